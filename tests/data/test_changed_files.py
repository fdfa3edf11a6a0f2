"""A file that another program cuts or changes while it is read ends the command with a line that names it."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild import Linear, minimise
from hogwild.cli import main
from hogwild.data.generate import write
from hogwild.data.open_dataset import open as open_data
from hogwild.data.packing.pack import pack
from hogwild.data.reader import ReadOptions, SchemaBuilder
from hogwild.data.readers import READERS
from hogwild.errors import DataError
from hogwild.guarded_map import cut_short, map_file

SVMLIGHT = next(reader for reader in READERS if reader.name == "svmlight")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "a.svm"
    write("classification", path, rows=3_000, features=50, seed=1)
    return path


def cut(path: Path, size: int) -> None:
    os.truncate(path, size)


def pieces(path: Path) -> Iterator[Any]:
    return SchemaBuilder(SVMLIGHT, ReadOptions()).pieces([path], 1 << 16)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
def test_text_that_is_cut(rows: Path, share: float) -> None:
    size, found = rows.stat().st_size, pieces(rows)
    next(found)
    cut(rows, int(share * size))
    with pytest.raises(DataError, match=rf"a\.svm: another program has cut the file from {size:,} to .* while it was"):
        list(found)


@pytest.mark.parametrize("change", ["grown", "written anew", "removed"])
def test_text_that_is_changed(rows: Path, change: str) -> None:
    found = pieces(rows)
    next(found)
    if change == "removed":
        rows.unlink()
    elif change == "grown":
        with rows.open("ab") as file:
            file.write(b"1 1:1\n")
    else:
        os.utime(rows, ns=(5, 5))
    with pytest.raises(DataError, match=r"a\.svm: another program has (changed|removed) the file while it was read"):
        list(found)


def test_a_file_that_is_replaced_as_a_whole_is_another_one(rows: Path) -> None:
    found = pieces(rows)
    next(found)
    (rows.parent / "new").write_bytes(rows.read_bytes())
    (rows.parent / "new").replace(rows)
    with pytest.raises(DataError, match="another program has changed the file"):
        list(found)


@pytest.mark.parametrize("strategy", ["serial", "hogwild", "locked"])
@pytest.mark.parametrize("array", ["indices.u32", "values.f32", "labels.f64", "indptr.i64"])
def test_a_packed_folder_that_is_cut_while_a_run_trains(rows: Path, strategy: str, array: str) -> None:
    folder = rows.parent / "packed"
    pack([rows], folder)
    epochs: list[int] = []

    def change(event: Any) -> None:
        if event["event"] == "epoch":
            epochs.append(event["epoch"])
            if event["epoch"] == 2:
                cut(folder / array, 4_096)

    with pytest.raises(DataError, match=rf"{array}: another program has cut the file from .* to 4,096 bytes"):
        minimise(
            Linear(open_data(folder)), "sgd", 0.1, strategy, budget=1_000, callbacks=[change],
            checkpoint=rows.parent / "points",
        )  # fmt: skip
    assert epochs in ([1, 2], [1, 2, 3])  # what was computed from zeros is not recorded
    assert (rows.parent / "points" / "latest.safetensors").exists()


def test_the_last_epoch_counts_too(rows: Path) -> None:
    folder = rows.parent / "packed"
    pack([rows], folder)

    def change(event: Any) -> None:
        if event["event"] == "epoch" and event["epoch"] == 3:
            cut(folder / "values.f32", 0)

    with pytest.raises(DataError, match=r"values\.f32: another program has cut the file"):
        minimise(Linear(open_data(folder)), "sgd", 0.1, "serial", budget=4, callbacks=[change])


def test_by_messages(rows: Path) -> None:
    folder = rows.parent / "packed"
    pack([rows], folder)

    def change(event: Any) -> None:
        if event["event"] == "epoch" and event["epoch"] >= 2:  # A busy machine may pass over the second.
            cut(folder / "values.f32", 0)

    with pytest.raises(Exception, match=r"values\.f32: another program has cut the file"):
        minimise(Linear(open_data(folder)), "sgd", 0.1, "parameter-server", "local", budget=1_000, callbacks=[change])


def test_a_folder_that_is_packed_anew_does_not_disturb_a_run(rows: Path) -> None:
    folder = rows.parent / "packed"
    pack([rows], folder)

    def change(event: Any) -> None:
        if event["event"] == "epoch" and event["epoch"] == 2:
            pack([rows], folder, overwrite=True, seed=5)

    run = minimise(Linear(open_data(folder)), "sgd", 0.1, "serial", budget=4, callbacks=[change])
    assert run.stop_reason == "epochs"


def test_predictions_of_a_folder_that_is_cut(
    rows: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, model = rows.parent / "packed", rows.parent / "model"
    assert main(["pack", str(rows), str(folder)]) == 0
    assert main(["train", str(folder), "--epochs", "1", "--out", str(model)]) == 0
    from hogwild.kernels import loss_sums

    scores = loss_sums.scores_of

    def cutting(*arguments: Any) -> Any:
        cut(folder / "indices.u32", 0)
        return scores(*arguments)

    monkeypatch.setattr(loss_sums, "scores_of", cutting)
    capsys.readouterr()
    assert main(["predict", str(model), str(folder), "--out", str(rows.parent / "answers")]) == 1
    assert "indices.u32: another program has cut the file" in capsys.readouterr().err
    assert not (rows.parent / "answers").exists()


def test_a_mapping_reads_zeros_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\1" * (8 * mmap.PAGESIZE))
    with path.open("rb") as file:
        one, other = (map_file(file.fileno(), 8 * mmap.PAGESIZE) for _ in range(2))
    cut(path, mmap.PAGESIZE + 1)
    assert not cut_short(one)
    assert np.frombuffer(one, np.uint8).sum() == mmap.PAGESIZE + 1
    assert (cut_short(one), cut_short(other)) == (True, False)


def test_many_mappings_come_and_go(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(mmap.PAGESIZE))
    with path.open("rb") as file:
        for _ in range(5_000):
            map_file(file.fileno(), 10)
        kept = map_file(file.fileno(), 10)
    cut(path, 0)
    assert (kept[5], cut_short(kept)) == (0, True)


OTHERS = """
import mmap, os, sys
from hogwild.guarded_map import map_file
with open(sys.argv[1], "rb") as file:
    ours = map_file(file.fileno(), 9_000)
    others = mmap.mmap(file.fileno(), 9_000, access=mmap.ACCESS_READ)
os.truncate(sys.argv[1], 0)
print(ours[8_000], flush=True)
print(others[8_000])
"""


def test_faults_of_others_are_left_to_them(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(9_000))
    done = subprocess.run(
        [sys.executable, "-c", OTHERS, str(tmp_path / "a")], capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (-signal.SIGBUS, b"0\n")


AFTER_ANOTHER_HANDLER = """
import faulthandler, mmap, sys, tempfile
from hogwild.guarded_map import cut_short, map_file

def cut_and_read(mapped):
    with tempfile.TemporaryFile() as file:
        file.write(bytes(2 * mmap.PAGESIZE)); file.flush()
        pages = mapped(file.fileno(), 2 * mmap.PAGESIZE)
        file.truncate(1)
        pages[mmap.PAGESIZE]
        return pages

assert cut_short(cut_and_read(map_file))
faulthandler.enable()
assert cut_short(cut_and_read(map_file)), "the handler of others has taken the place of ours"
print("guarded", flush=True)
cut_and_read(lambda descriptor, size: mmap.mmap(descriptor, size, access=mmap.ACCESS_READ))
"""


def test_a_handler_of_others_gets_other_faults_and_does_not_take_those_of_guarded_files() -> None:
    done = subprocess.run(
        [sys.executable, "-c", AFTER_ANOTHER_HANDLER], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "guarded\n", done.stderr
    assert done.stderr.count("Fatal Python error: Bus error") == 1
    assert done.returncode == -signal.SIGBUS
