"""A disk that is full at every write of the other writers: models of all kinds, reports, records, folders of runs."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faulty_disk import failing_at_every_write
from hogwild import HogwildClassifier, Linear, minimise
from hogwild.data.generate.ratings import write_ratings
from hogwild.data.generate.sparse_records import SparseRecords
from hogwild.data.packing.pack import pack
from hogwild.lab.report.page import write_report
from hogwild.lab.report_model import Report


def rows() -> tuple[Any, Any]:
    X = np.random.default_rng(0).standard_normal((60, 4))
    return X, (X[:, 0] > 0).astype(int)


def onnx(path: Path) -> Callable[[], object]:
    model = HogwildClassifier(max_iter=500).fit(*rows())
    return lambda: model.to_onnx(path)


def module(path: Path) -> Callable[[], object]:
    torch = pytest.importorskip("torch")
    from hogwild.models.module import ModuleModel

    model = ModuleModel(torch.nn.Linear(300, 30))
    return lambda: model.save(path)


def run_model(path: Path) -> Callable[[], object]:
    run = minimise(Linear(rows()), budget=1, strategy="serial")
    return lambda: run.save(path)


WRITERS: dict[str, Callable[[Path], Callable[[], object]]] = {
    "onnx": onnx,
    "module": module,
    "run": run_model,
    "ratings.csv": lambda path: lambda: write_ratings(path, users=20, items=20, n_rows=50, overwrite=True),
    "records.tfrecord": lambda path: lambda: SparseRecords(rows=50, dense_size=100, min_nnz=2, max_nnz=5).write(path),
    "page.html": lambda path: lambda: write_report(Report("Nothing yet", (), "today", {}, {}), path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_the_old_file_stays_or_the_new_one_is_whole(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    write = WRITERS[name](path)
    write()
    new = path.read_bytes()
    path.write_bytes(b"old")

    def check(error: BaseException) -> None:
        assert isinstance(error, OSError)
        assert error.errno == errno.ENOSPC
        assert error.filename == str(path)
        assert [each.name for each in tmp_path.iterdir()] == [name]
        # The entries of the metadata of a module have no order.
        assert path.read_bytes() == b"old" or len(path.read_bytes()) == len(new)

    assert failing_at_every_write(write, check) >= 3


@pytest.mark.parametrize("shards", [1, 3])
def test_a_larger_folder(shards: int, tmp_path: Path) -> None:
    source, folder = tmp_path / "a.svm", tmp_path / "packed"
    source.write_text("".join(f"{k % 2} {k % 7 + 1}:{k}\n" for k in range(200)))

    def check(error: BaseException) -> None:
        assert isinstance(error, OSError)
        assert error.filename == str(folder)
        # The folder is there if only its parent could not be flushed.
        assert {each.name for each in tmp_path.iterdir()} <= {"a.svm", "packed"}

    def write() -> None:
        pack([source], folder, shards=shards, overwrite=True)

    assert failing_at_every_write(write, check) > 50


def test_the_folder_of_a_run(tmp_path: Path) -> None:
    number = [0]

    def write() -> None:
        number[0] += 1
        minimise(Linear(rows()), "sgd", 0.1, "serial", budget=2, folder=tmp_path / str(number[0]), checkpoint=True)

    def check(error: BaseException) -> None:
        assert "No space left" in str(error) or "cannot be" in str(error) or "nothing can be written" in str(error)
        assert str(tmp_path) in str(error)
        folder = tmp_path / str(number[0])
        assert not [each for each in folder.rglob(".*") if each.name != ".lock"]
        assert not list(folder.rglob(".lock"))

    assert failing_at_every_write(write, check) > 10
