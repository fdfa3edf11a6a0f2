"""Packing in several processes: each reads a share of the files, and the folder is that of one process."""

from __future__ import annotations

import gzip
import os
import signal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packed_contents import contents, svmlight_lines

from hogwild.data import ReadOptions
from hogwild.data.packing import file_parts
from hogwild.data.packing.file_parts import FilePart, divide_files, file_size
from hogwild.data.packing.pack import pack
from hogwild.data.packing.process_pool import ProcessPool
from hogwild.data.packing.stages import DividedPart, plan_shards
from hogwild.data.packing.writer import Bucket
from hogwild.data.readers.svmlight import SVMLIGHT
from hogwild.errors import DataError, ParameterError, WorkerError

ROWS = 700


def vw_lines(first: int, count: int) -> list[str]:
    return [f"{number % 2} {1 + number % 2} |a x{number % 7} y:{number} |b z" for number in range(first, first + count)]


def write(folder: Path, kind: str) -> list[Path]:
    """Files of a kind, with all rows in their order."""
    if kind == "parquet":
        pyarrow, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        table = pyarrow.table(
            {"label": np.arange(ROWS) % 2, "a": np.arange(ROWS) * 0.5, "b": [f"k{i % 9}" for i in range(ROWS)]}
        )
        pq.write_table(table, folder / "a.parquet", row_group_size=80)
        pq.write_table(table, folder / "b.parquet", row_group_size=1000)
        return [folder / "a.parquet", folder / "b.parquet"]
    if kind == "npz":
        for name in "ab":
            np.savez(folder / f"{name}.npz", X=np.random.default_rng(3).random((ROWS, 4)), y=np.arange(ROWS) % 2)
        return [folder / "a.npz", folder / "b.npz"]
    lines = vw_lines if kind == "vw" else svmlight_lines
    first, second = folder / f"a.{kind}", folder / f"b.{kind}"
    first.write_text("\n".join(lines(0, ROWS)))  # without a newline at the end
    text = "\r\n".join(lines(ROWS, ROWS // 2)) + "\r\n"
    if kind == "svm":
        (folder / "c.svm.gz").write_bytes(gzip.compress(text.encode()))
        return [first, folder / "c.svm.gz", first]
    second.write_text(text)
    return [first, second]


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_parts, "LEAST_BYTES", 100)


@pytest.mark.parametrize(("kind", "shards"), [("svm", 3), ("svm", 1), ("vw", 5), ("parquet", 2), ("npz", 4)])
def test_several_processes_write_what_one_writes(tmp_path: Path, small_parts: None, kind: str, shards: int) -> None:
    files, told = write(tmp_path, kind), []
    one = pack(files, tmp_path / "one", shards=shards, seed=7)
    many = pack(files, tmp_path / "many", shards=shards, seed=7, workers=3, progress=lambda *what: told.append(what))
    assert many.n_rows == one.n_rows
    assert contents(tmp_path / "many") == contents(tmp_path / "one")
    stages = {stage: (done, total) for stage, done, total in told}
    assert stages == {"reading": (one.n_rows, None), "dividing": 2 * (one.n_rows,), "writing": 2 * (one.n_rows,)}
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_rows_that_decide_for_all_may_be_in_any_part(tmp_path: Path, small_parts: None) -> None:
    """An index 0, a value that is not one and the last column are each in one part only."""
    lines = [f"{number} 1:1 2:1" for number in range(1, 300)]
    lines[40], lines[150], lines[290] = "41 0:1", "151 5:0.5", "291 9:1"
    (tmp_path / "a.svm").write_text("\n".join(lines))
    one, many = (pack([tmp_path / "a.svm"], tmp_path / f"{n}", shards=2, workers=n) for n in (1, 4))
    assert (many.base, many.n_features, many.layout) == (one.base, one.n_features, one.layout) == (0, 10, "sparse")
    assert contents(tmp_path / "4") == contents(tmp_path / "1")


@settings(max_examples=30)
@given(st.integers(0, 30), st.integers(1, 9), st.binary(max_size=40), st.booleans())
def test_parts_of_a_file_have_each_row_once(
    tmp_path_factory: pytest.TempPathFactory, rows: int, parts: int, noise: bytes, ends: bool
) -> None:
    path = tmp_path_factory.mktemp("parts") / "a.svm"
    lines = [f"{number} 1:{number + 1}" + "#" * (number % 3) for number in range(1, rows + 2)]
    lines.insert(rows // 2, "# " + noise.hex())
    path.write_text("\n".join(lines) + "\n" * ends)
    size = file_size(path, SVMLIGHT)
    cuts = np.linspace(0, size.units, parts + 1).astype(int).tolist()
    found = [
        label
        for first, last in pairwise(cuts)
        for piece in FilePart(path, 1, (first, last)).pieces(SVMLIGHT, ReadOptions(), 64)
        for label in piece.labels.tolist()
    ]
    assert found == list(range(1, rows + 2))


def test_errors_name_the_line_of_the_file(tmp_path: Path, small_parts: None) -> None:
    lines = svmlight_lines(0, 300)
    lines[250] = "1 3:x"
    (tmp_path / "a.svm").write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"a\.svm, line 251, column 5"):
        pack([tmp_path / "a.svm"], tmp_path / "out", workers=3)
    lines[250] = "1 0:1 60:1"  # that indices count from 0 is known only at the end
    (tmp_path / "a.svm").write_text("\n".join(lines))
    found = []
    for workers in (1, 3):
        with pytest.raises(DataError, match=r"a\.svm, row \d+: index 60 is beyond the last of 60") as told:
            pack([tmp_path / "a.svm"], tmp_path / "out", reading=ReadOptions(features=60), workers=workers)
        found.append(str(told.value))
    assert found[0] == found[1]
    assert [path.name for path in tmp_path.iterdir()] == ["a.svm"]


def test_errors_name_the_row_of_a_parquet_file(tmp_path: Path, small_parts: None) -> None:
    pyarrow, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    labels = [None if number == 333 else 1.0 for number in range(400)]
    pq.write_table(pyarrow.table({"label": labels, "a": range(400)}), tmp_path / "a.parquet", row_group_size=50)
    for workers in (1, 3):
        with pytest.raises(DataError, match=r"a\.parquet, row 333, column 'label': the label is missing"):
            pack([tmp_path / "a.parquet"], tmp_path / "out", workers=workers)


def test_what_cannot_be_packed_is_told(tmp_path: Path, small_parts: None) -> None:
    blank = tmp_path / "blank.svm"
    blank.write_text("# nothing\n" * 100)
    with pytest.raises(DataError, match=r"blank\.svm: there (is|are) no row"):
        pack([blank], tmp_path / "out", workers=2)
    some = tmp_path / "some.svm"
    some.write_text("\n".join(svmlight_lines(0, 5)))
    with pytest.raises(ParameterError, match="no more than 5 shards"):
        pack([some], tmp_path / "out", workers=2, shards=6)
    with pytest.raises(ParameterError, match="'workers' parameter must be"):
        pack([some], tmp_path / "out", workers=0)
    with pytest.raises(ParameterError, match="by one process: leave out 'workers'"):
        pack([some], tmp_path / "out", workers=2, readers=[SVMLIGHT])
    with pytest.raises(ParameterError, match="'memory' parameter must be at least"):
        pack([some], tmp_path / "out", workers=2, memory=2**20)


def test_a_process_that_is_killed_is_told() -> None:
    with ProcessPool(2) as pool, pytest.raises(WorkerError, match="ended with code -9 while it packed"):
        list(pool.call(_end, [(0,), (1,)]))


def _end(number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_files_are_divided_into_parts_of_about_the_same_size(tmp_path: Path) -> None:
    sizes = [file_parts.FileSize(Path(name), size, units) for name, size, units in (
        ("large", 10 << 20, 10 << 20), ("groups", 10 << 20, 3), ("small", 1000, 1000), ("packed", 30 << 20, 1),
    )]  # fmt: skip
    parts = divide_files(sizes, 10)
    assert [(part.path.name, part.extent) for part in parts] == [
        ("large", (0, 5 << 20)), ("large", (5 << 20, 10 << 20)), ("groups", (0, 1)), ("groups", (1, 3)),
        ("small", None), ("packed", None),
    ]  # fmt: skip
    assert sum(part.bytes for part in parts) == sum(size.bytes for size in sizes)


@given(st.lists(st.lists(st.integers(0, 5), min_size=4, max_size=4), min_size=1, max_size=3), st.integers(1, 6))
def test_shards_are_made_of_consecutive_rows(rows: list[list[int]], shards: int) -> None:
    total = sum(map(sum, rows))
    if total < shards:
        return
    parts = [DividedPart([Bucket([Path(f"{number}-{at}")], 6, count) for at, count in enumerate(some)])
             for number, some in enumerate(rows)]  # fmt: skip
    numbered, at = {}, 0
    for bucket in range(4):
        numbered[bucket] = list(range(at, at := at + sum(some[bucket] for some in rows)))
    found = []
    for plan in plan_shards(parts, shards):
        mine = [row for each in plan.buckets for row in numbered[int(each.paths[0].name[-1])]]
        assert plan.rows in (total // shards, total // shards + 1)
        found += mine[plan.skipped : plan.skipped + plan.rows]
        for each in plan.buckets:
            whole = numbered[int(each.paths[0].name[-1])]
            assert each.kept == (not set(whole) <= set(mine[plan.skipped : plan.skipped + plan.rows]))
    assert found == list(range(total))
