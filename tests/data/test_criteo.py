"""Criteo's format: the compiled parser makes the rows that the encoding makes of the same table in other formats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hogwild
from hogwild.data import InMemoryDataset, ReadOptions
from hogwild.data import open as open_data
from hogwild.data.csr import CSRRows, concatenate
from hogwild.data.generate.criteo import Criteo
from hogwild.data.generate.write import svmlight_text
from hogwild.data.loader import load
from hogwild.data.readers.criteo import CRITEO, criteo_encoding
from hogwild.errors import DataError, ParameterError

GOOD = "1\t5" + 12 * "\t" + "\t68fd1e64" + 25 * "\t"


def made(path: Path, rows: int) -> Path:
    Criteo(rows, seed=1).write(path)
    return path


def rows_of(path: Path, **options: object) -> CSRRows:
    found = open_data(path, reading=ReadOptions(**options), shuffle=False).rows  # type: ignore[arg-type]
    assert found is not None
    return found


def assert_equal(one: CSRRows, other: CSRRows) -> None:
    for name in ("indptr", "indices", "values", "labels"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.features, one.layout) == (other.features, other.layout)


@pytest.mark.parametrize("bits", [4, 10, 20])
def test_rows_are_those_of_the_encoding(tmp_path: Path, bits: int) -> None:
    path = made(tmp_path / "a.tsv", 500)
    odd = "0\t-3\t0\t1e3\t2.5\t123456789012345678" + 8 * "\t" + "\tx\tyy\tzzz\täöü\t" + "long" * 9 + 21 * "\t" + "\r\n"
    path.write_bytes(path.read_bytes() + b"\n" + odd.encode())
    found = rows_of(path, format="criteo", bits=bits)
    assert_equal(found, rows_of(path, format="csv", encoding=criteo_encoding(bits)))
    assert len(found) == 501
    assert found.layout == "binary"


def test_a_model_of_the_same_rows_as_svmlight_is_the_same(tmp_path: Path) -> None:
    path = made(tmp_path / "train.txt", 2000)  # The format is found by the tabs of the first line.
    data = open_data(path)
    assert data.rows is not None
    (tmp_path / "a.svm").write_bytes(svmlight_text(rows_of(path)))
    other = open_data(tmp_path / "a.svm", reading=ReadOptions(features=data.n_features, base=1))
    models = [hogwild.minimise(hogwild.Linear(each), budget=2, strategy="serial").model for each in (data, other)]
    np.testing.assert_array_equal(models[0].weights, models[1].weights)
    text = path.read_text().splitlines()
    (tmp_path / "test.txt").write_text("".join(line.partition("\t")[2] + "\n" for line in text))
    np.testing.assert_array_equal(
        models[0].answer(tmp_path / "test.txt", format="criteo").values, models[0].answer(path).values
    )


def test_rows_that_fill_the_memory_stay_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = made(tmp_path / "a.txt", 20_000)
    expected = rows_of(path)
    size = expected.nonzeros * 4 + 32 * len(expected)
    data = load([path], CRITEO, ReadOptions(), limit=size + 2**16)
    assert isinstance(data, InMemoryDataset)
    assert_equal(data.rows, expected)
    assert data.laid_out(0, 10) is None
    visited = np.concatenate([chunk.order for chunk in map(data.epoch(0, 0).__getitem__, range(len(data.epoch(0, 0))))])
    assert not (np.diff(visited.astype(np.int64)) == 1).all()
    np.testing.assert_array_equal(np.sort(visited), np.arange(20_000))
    with pytest.raises(DataError, match="do not fit into"):
        load([path], CRITEO, ReadOptions(), limit=size // 2)


def test_parts_of_the_text_are_rows_in_order_and_errors_have_their_lines(tmp_path: Path) -> None:
    path = made(tmp_path / "a.txt", 2000)  # Half a megabyte, in parts of 64 KiB.
    parts = list(CRITEO.read(path, ReadOptions(), 1))
    assert len(parts) > 5
    assert_equal(concatenate(parts), rows_of(path))
    lines = path.read_text().splitlines()
    for number in (1900, 700):  # The error of the first wrong line counts, whichever part is parsed first.
        lines[number - 1] = "x" + lines[number - 1]
        path.write_text("\n".join(lines) + "\n")
        with pytest.raises(DataError, match=rf"line {number:,}, column 1: the label"):
            list(CRITEO.read(path, ReadOptions(), 1))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x" + GOOD[1:], r"a.txt, line 2, column 1: the label 'x' is not a number"),
        ("1\t5x" + GOOD[3:], r"a.txt, line 2, column 2: '5x' is not a number"),
        ("1\t" + 30 * "5" + GOOD[3:], "is not a number of at most 18 digits"),
        ("1\t5\t6", r"line 2, column 3: the line ends after 3 of 40 columns"),
        (GOOD + "\t7", r"line 2, column 40: the line has more than 40 columns"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "a.txt").write_text(f"{GOOD}\n{line}\n")
    with pytest.raises(DataError, match=message):
        open_data(tmp_path / "a.txt")


def test_its_columns_have_their_roles(tmp_path: Path) -> None:
    path = made(tmp_path / "a.txt", 3)
    with pytest.raises(ParameterError, match="columns of the format 'criteo' are known"):
        open_data(path, label="I1")
