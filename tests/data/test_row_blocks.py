"""Rows of files block by block: the same rows, labels and errors as of the whole file, in bounded memory."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from hogwild.data import ReadOptions, row_blocks
from hogwild.data import open as open_data
from hogwild.errors import DataError
from hogwild.models.linear import LinearModel


@pytest.fixture
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_blocks, "_BLOCK_BYTES", 2**12)
    monkeypatch.setattr(row_blocks, "_LEAST_BLOCK_BYTES", 2**12)


def lines(rows: int, first: int = 1, values: str = "mixed") -> str:
    rng = np.random.default_rng(0)
    made = []
    for number in range(rows):
        columns = np.unique(rng.integers(first, first + 50, 8))
        value = "1" if values == "ones" or (values == "late" and number < rows // 2) else "0.25"
        made.append(f"{number % 2} " + " ".join(f"{column}:{value}" for column in columns))
    return "\n".join(made) + "\n"


MODEL = LinearModel(
    np.random.default_rng(1).normal(size=(60, 1)).astype(np.float32), np.ones(1, np.float32), "logistic", (0.0, 1.0),
    "sigmoid",
)  # fmt: skip


@pytest.mark.usefixtures("_small_blocks")
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("values", ["mixed", "ones", "late"])
def test_scores_are_those_of_the_whole_file_to_the_last_bit(first: int, values: str, tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_text(lines(3000, first, values))
    blocks = list(row_blocks.row_blocks(path, ReadOptions(features=60, extra="ignore")))
    whole = MODEL.open(path)
    assert len(blocks) > 5
    assert [block.base for block in blocks] == [whole.base] * len(blocks)
    assert np.concatenate([block.labels() for block in blocks]).tolist() == whole.labels().tolist()
    assert MODEL.decide(str(path)).tobytes() == MODEL.decide(whole).tobytes()
    answer = MODEL.answer(path)
    assert answer.scores["accuracy"] == np.mean(MODEL.predict(whole) == whole.labels())


def _tabled(path: Path) -> Path:
    rows = [f"{number % 2},{number * 0.37 % 5:.3f},{'abc'[number % 3]}" for number in range(3000)]
    path.write_text("label,number,city\n" + "\n".join(rows) + "\n")
    return path


def _parquet(path: Path) -> Path:
    import pyarrow
    import pyarrow.parquet

    number = np.arange(3000)
    table = pyarrow.table({"label": number % 2, "number": number * 0.37 % 5, "city": np.take(list("abc"), number % 3)})
    pyarrow.parquet.write_table(table, path, row_group_size=500)
    return path


def _npz(path: Path) -> Path:
    matrix = scipy.sparse.random(3000, 60, 0.2, "csr", random_state=0)
    parts = {"indptr": matrix.indptr, "indices": matrix.indices, "data": matrix.data, "shape": matrix.shape}
    np.savez(path, **parts, format=b"csr", y=np.arange(3000) % 2)  # type: ignore[arg-type]
    return path


def _vw(path: Path) -> Path:
    lines = (f"{number % 2} |x a:{number * 0.37 % 5:.3f} {'abc'[number % 3]}" for number in range(3000))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.usefixtures("_small_blocks")
@pytest.mark.parametrize(
    ("name", "write"), [("a.csv", _tabled), ("a.parquet", _parquet), ("a.npz", _npz), ("a.vw", _vw)]
)
def test_scores_of_every_format(name: str, write: Callable[[Path], Path], tmp_path: Path) -> None:
    path = write(tmp_path / name)
    data = open_data(path, shuffle=False)
    weights = np.random.default_rng(2).normal(size=(data.n_features, 1)).astype(np.float32)
    model = LinearModel(weights, np.ones(1, np.float32), "logistic", (0.0, 1.0), "sigmoid", data.reading)
    blocks = [answer.values for answer in model.answers(path)]
    assert len(blocks) > 5
    assert np.concatenate(blocks).tolist() == model.predict(data).tolist()
    assert model.decide(path).tobytes() == model.decide(data).tobytes()


@pytest.mark.usefixtures("_small_blocks")
def test_several_files_and_packed_folders(tmp_path: Path) -> None:
    from hogwild.data.packing.pack import pack

    for name in ("a.svm", "b.svm"):
        (tmp_path / name).write_text(lines(1000))
    both = [tmp_path / "a.svm", tmp_path / "b.svm"]
    assert MODEL.decide(both).tobytes() == MODEL.decide(MODEL.open(both)).tobytes()
    pack([tmp_path / "a.svm"], tmp_path / "packed", reading=ReadOptions(features=60))
    opened = open_data(tmp_path / "packed")
    with pytest.warns(UserWarning, match="shuffled when they were packed"):
        found = MODEL.decide(tmp_path / "packed")
    assert found.tobytes() == MODEL.decide(opened).tobytes()


@pytest.mark.usefixtures("_small_blocks")
def test_an_error_names_the_line_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_text(lines(2000) + "1 2:x\n")
    found = iter(row_blocks.row_blocks(path, ReadOptions(features=60, base=1)))
    assert next(found).n_rows > 0
    with pytest.raises(DataError, match="line 2,001"):
        list(found)
    path.write_text(lines(2000) + "1 0:1\n")
    with pytest.raises(DataError, match="line 2,001, column 3: index 0"):
        list(row_blocks.row_blocks(path, ReadOptions(features=60, base=1)))


@pytest.mark.usefixtures("_small_blocks")
def test_numbers_have_the_quality_of_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "a.svm"
    path.write_text(
        "".join(f"{number * 0.37 % 5} {line[2:]}\n" for number, line in enumerate(lines(2000).splitlines()))
    )
    model = LinearModel(MODEL.weights, MODEL.intercept, "squared", reading={"base": 1})
    answer, labels = model.answer(path), model.open(path).labels()
    assert answer.scores["r2"] == pytest.approx(1 - np.mean((answer.values - labels) ** 2) / np.var(labels), rel=1e-12)


PEAK = """
import resource, sys
from hogwild.cli import main
assert main(["predict", sys.argv[1], sys.argv[2], "--out", sys.argv[3]]) == 0
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Rows of the long file take 200 MiB in memory: with the whole file the second peak was 226 MiB above the first."""
    model, files = tmp_path / "model", (tmp_path / "short.svm.gz", tmp_path / "long.svm.gz")
    replace(MODEL, reading={"base": 1}).save(model)
    part, peaks = gzip.compress(lines(20_000).encode(), 1), []
    for path, times in zip(files, (20, 100), strict=True):
        path.write_bytes(part * times)
        done = subprocess.run(
            [sys.executable, "-c", PEAK, str(model), str(path), str(tmp_path / "out.txt")],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        peaks.append(int(done.stdout.split()[-1]))
    assert (tmp_path / "out.txt").read_bytes().count(b"\n") == 2_000_000
    assert peaks[1] - peaks[0] < 100
