"""A disk that is full at any write leaves the old file whole and nothing else, and the error names the file."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faulty_disk import failing_at_every_write
from hogwild import Checkpoints, load
from hogwild.callbacks import JsonLines, TensorBoard
from hogwild.cli import main
from hogwild.data.generate import write as generate
from hogwild.data.packing.pack import pack
from hogwild.data.packing.packed_dataset import PackedDataset
from hogwild.models.linear import LinearModel


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


def check_names(path: Path) -> Callable[[BaseException], None]:
    """Make a check that an error names the file and leaves nothing beside it."""
    before = names(path.parent)

    def check(error: BaseException) -> None:
        assert isinstance(error, OSError), error
        assert error.errno == errno.ENOSPC
        assert str(error.filename) == str(path)
        assert names(path.parent) == before

    return check


def linear(size: int) -> LinearModel:
    return LinearModel(np.ones((size, 1), np.float32), np.zeros(1, np.float32), "logistic", np.array([0.0, 1.0]))


def test_a_model(tmp_path: Path) -> None:
    path = tmp_path / "model"
    linear(3).save(path)
    check = check_names(path)

    def whole(error: BaseException) -> None:
        check(error)
        assert len(load(path).weights) in (3, 50_000)  # the new one, if only its folder could not be flushed

    assert failing_at_every_write(lambda: linear(50_000).save(path), whole) >= 3
    assert len(load(path).weights) == 50_000


def test_a_checkpoint(tmp_path: Path) -> None:
    points, number = Checkpoints(tmp_path / "points"), [0]
    points.save({"w": np.zeros(5)}, {"epoch": 0})

    def save() -> None:
        number[0] += 1
        points.save({"w": np.full(20_000, number[0])}, {"epoch": number[0]})

    def check(error: BaseException) -> None:
        assert isinstance(error, OSError)
        assert str(tmp_path / "points") in str(error.filename)
        found = Checkpoints(tmp_path / "points").load()
        assert found is not None
        assert (found[0]["w"] == found[1]["epoch"]).all()
        assert found[1]["epoch"] in (0, number[0])
        assert not list((tmp_path / "points").glob(".*"))

    assert failing_at_every_write(save, check) >= 3


def test_a_packed_folder(tmp_path: Path) -> None:
    source, folder = tmp_path / "a.svm", tmp_path / "parts" / "packed"
    generate("classification", source, rows=40, features=30)
    pack([source], folder)
    source.write_text("1 3:1\n0 2:5\n")
    check = check_names(folder)

    def whole(error: BaseException) -> None:
        check(error)
        assert PackedDataset(folder, None, verify=True).n_rows in (40, 2)

    assert failing_at_every_write(lambda: pack([source], folder, overwrite=True), whole) > 10
    assert PackedDataset(folder, None, verify=True).n_rows == 2


@pytest.mark.parametrize("name", ["a.svm", "a.svm.gz", "a.npz"])
def test_generated_data(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"old")
    assert failing_at_every_write(
        lambda: generate("classification", path, rows=500, overwrite=True), check_names(path)
    ) >= 3  # fmt: skip
    assert path.read_bytes() != b"old"


@pytest.mark.parametrize("name", ["answers.txt", "answers.npy"])
def test_predictions(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model, answers = tmp_path / "a.svm", tmp_path / "model", tmp_path / name
    data.write_text("1 1:1\n0 2:1\n")
    linear(3).save(model)
    assert main(["predict", str(model), str(data), "--out", str(answers)]) == 0
    new = answers.read_bytes()
    answers.write_text("old")
    capsys.readouterr()

    def predict() -> None:
        if main(["predict", str(model), str(data), "--out", str(answers)]):
            raise AssertionError(capsys.readouterr().err)

    def check(error: BaseException) -> None:
        assert str(error) == f"error: {answers}: No space left on device\n"
        assert answers.read_bytes() in (b"old", new)
        assert sorted(names(tmp_path)) == sorted(["a.svm", "model", name])

    assert failing_at_every_write(predict, check) >= 3


@pytest.mark.filterwarnings("ignore::hogwild.errors.LogWarning")
@pytest.mark.parametrize("kind", [JsonLines, TensorBoard])
def test_a_log(kind: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    number = [0]

    def write() -> None:
        number[0] += 1
        log = kind(tmp_path / str(number[0]))
        try:
            for epoch in range(3):
                log({"event": "epoch", "epoch": epoch, "updates": epoch, "loss": 0.5})
        finally:
            log.close()

    def check(error: BaseException) -> None:
        assert isinstance(error, OSError)
        assert str(tmp_path / str(number[0])) in str(error.filename)

    assert failing_at_every_write(write, check) >= 3
    assert capfd.readouterr().err == ""
