from __future__ import annotations

import bz2
import gzip
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hogwild.data.csr import CSRRows, concatenate
from hogwild.data.hashing import column_of
from hogwild.data.reader import ReadOptions
from hogwild.data.readers.vw import read
from hogwild.errors import DataError


def read_text(tmp_path: Path, text: bytes, *, piece_bytes: int = 1 << 20, **choices: object) -> CSRRows:
    path = tmp_path / "a.vw"
    path.write_bytes(text)
    return concatenate(list(read(path, ReadOptions(**choices), piece_bytes)))  # type: ignore[arg-type]


def entries(rows: CSRRows, row: int) -> dict[int, float]:
    start, stop = rows.indptr[row], rows.indptr[row + 1]
    return dict(zip(rows.indices[start:stop].tolist(), rows.values[start:stop].tolist(), strict=True))


def test_names_hash_in_their_namespaces(tmp_path: Path) -> None:
    rows = read_text(tmp_path, b"1 |user:2 age:3 Ulm 7 | price:0.5 12 |3 4\n")
    assert rows.features == 2**18
    assert entries(rows, 0) == {
        column_of("age", namespace="user"): 6.0,
        column_of("Ulm", namespace="user"): 2.0,
        column_of("7", namespace="user"): 2.0,
        column_of("price"): 0.5,
        12: 1.0,
        7: 1.0,
    }


def test_label_importance_base_and_tag(tmp_path: Path) -> None:
    text = b"1 |a\n-2.5 3 |a\n+1 0.5 0 |a\n1e1 'tag |a\n2 tag|a\n3 2 'tag|a\n"
    rows = read_text(tmp_path, text)
    assert rows.labels.tolist() == [1.0, -2.5, 1.0, 10.0, 2.0, 3.0]
    assert rows.weights.tolist() == [1.0, 3.0, 0.5, 1.0, 1.0, 2.0]


def test_no_weights_where_every_importance_is_one(tmp_path: Path) -> None:
    assert read_text(tmp_path, b"1 1 |a\n2 |a\n").weights.size == 0


def test_blanks_of_all_kinds(tmp_path: Path) -> None:
    rows = read_text(tmp_path, b"\n  \n1\t|\t3:1  4 \r\n\r\n 2 | 5|6 7||\t8\n-1 |\n3 | 9")
    assert [sorted(entries(rows, row)) for row in range(4)] == [[3, 4], [5, 8, 13], [], [9]]
    assert rows.labels.tolist() == [1.0, 2.0, -1.0, 3.0]


def test_duplicates_and_collisions_are_added(tmp_path: Path) -> None:
    rows = read_text(tmp_path, b"1 | 9:1 1:2 9:0.5 17:4 3:-0.0\n", bits=3)
    assert entries(rows, 0) == {1: 7.5, 3: 0.0}


def test_an_unlabelled_row_only_where_it_is_accepted(tmp_path: Path) -> None:
    rows = read_text(tmp_path, b"| 3\n'tag| 4\n1 | 5\n", unlabelled=True)
    assert rows.labels.tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("text", "line", "column", "what"),
    [
        (b"1 | a\n\n1 a b\n", 3, 1, "no '|'"),
        (b"1 | a\n2", 2, 1, "no '|'"),
        (b"1 'tag\n", 1, 1, "no '|'"),
        (b"1 | a\n | a\n", 2, 2, "no label"),
        (b"1| a\n", 1, 2, "no label"),
        (b"x | a\n", 1, 1, "label 'x' is not a number"),
        (b"1,2 | a\n", 1, 1, "label '1,2' is not a number"),
        (b"nan | a\n", 1, 1, "label 'nan' is not finite"),
        (b"1e39 | a\n", 1, 1, "too large"),
        (b"1 -2 | a\n", 1, 3, "importance '-2' is negative"),
        (b"1 inf | a\n", 1, 3, "not finite"),
        (b"1 x | a\n", 1, 3, "importance 'x'"),
        (b"1 2 0.5 | a\n", 1, 5, "base"),
        (b"1 2 0 4 | a\n", 1, 7, "too many words"),
        (b"1 'tag 2 | a\n", 1, 8, "tag"),
        (b"1 |:2 a\n", 1, 4, "without a namespace"),
        (b"1 |n: a\n", 1, 6, "no number"),
        (b"1 |n:x a\n", 1, 6, "namespace's scale 'x' is not a number"),
        (b"1 |n:1e39 a\n", 1, 6, "too large"),
        (b"1 | a :2\n", 1, 7, "without a feature name"),
        (b"1 | a: 2\n", 1, 7, "no number"),
        (b"1 | a:\n", 1, 7, "no number"),
        (b"1 | a:b\n", 1, 7, "value 'b' is not a number"),
        (b"1 | a:1:2\n", 1, 7, "value '1:2' is not a number"),
        (b"1 | a:1_0\n", 1, 7, "not a number"),
        (b"1 | a:nan\n", 1, 7, "not finite"),
        (b"1 | a:-Infinity\n", 1, 7, "not finite"),
        (b"1 | a:1e999\n", 1, 7, "too large"),
        (b"1 | a:4e38\n", 1, 7, "too large"),
        (b"1 |n:1e30 a:1e30\n", 1, 13, "too large"),
        (b"1 |n:1000000000000000000000000000001 a:1e30\n", 1, 6, "too large"),
        (b"1 | a:3e38 a:3e38\n", 1, None, "add up"),
        (b"1 | a\n2 | b\x00c\n", 2, 6, "control byte"),
        (b"1 \x1b| b\n", 1, 3, "control byte"),
        ("1 |\u00e9\u00e9 a:x\n".encode(), 1, 9, "value 'x'"),
    ],
)
def test_what_is_wrong_is_said_with_line_and_column(
    tmp_path: Path, text: bytes, line: int, column: int | None, what: str
) -> None:
    with pytest.raises(DataError) as caught:
        read_text(tmp_path, text)
    error = caught.value
    assert what in error.what
    assert (error.line, error.column) == (line, column)
    assert error.path == tmp_path / "a.vw"
    assert error.remedy


@pytest.mark.parametrize("text", [b"", b"\n", b" \r\n\t\n"])
def test_a_file_without_rows_is_an_error(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(DataError, match=r"a\.vw"):
        read_text(tmp_path, text)


def test_the_first_error_of_the_file_is_the_one_raised(tmp_path: Path) -> None:
    lines = [b"1 | a:1\n"] * 40_000
    lines[15_000], lines[39_000] = b"1 | a:x\n", b"nothing\n"
    with pytest.raises(DataError) as caught:
        read_text(tmp_path, b"".join(lines))
    assert (caught.value.line, caught.value.column) == (15_001, 7)


def test_the_first_error_of_a_line_is_the_one_raised(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'x'"):
        read_text(tmp_path, b"1 | a:x b:\n")


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
@settings(max_examples=60, deadline=None)
def test_numbers_are_read_exactly(tmp_path_factory: pytest.TempPathFactory, numbers: list[float]) -> None:
    forms = [f"{x!r} {x:.9g} {x:.17g} {x:.25g} {x:.3f} {x:+e} {x:.8E}".split() for x in numbers]
    tokens = [token for form in forms for token in form if abs(float(token)) <= 3.4028234e38]
    text = "".join(f"{token} | 0:{token}\n" for token in tokens).encode()
    rows = read_text(tmp_path_factory.mktemp("numbers"), text)
    assert rows.labels.tolist() == [float(token) for token in tokens]
    np.testing.assert_array_equal(rows.values, np.array([float(token) for token in tokens]).astype(np.float32))


@pytest.mark.parametrize(
    "token",
    ["1.00000005960464477539", "1.000000059604644775390625", "1.0000000596046448", "16777217", "16777217.000001",
     "33554435", "7.038531e-26", "1.17549429e-38", "1e-46", "7.0064923216240862e-46", ".5", "5.", "00001", "1e0000001",
     "9007199254740993", "0." + "0" * 40 + "1", "18446744073709551616", "00000000000000000000000.1"],
)  # fmt: skip
def test_numbers_that_are_hard_to_round(tmp_path: Path, token: str) -> None:
    rows = read_text(tmp_path, f"{token} {token} | 0:{token}\n".encode())
    assert rows.values[0] == np.float32(float(token))
    assert rows.weights.tolist() in ([], [np.float32(float(token))])
    assert rows.labels[0] == float(token)


def test_a_scale_that_is_hard_to_convert_reaches_its_own_features_only(tmp_path: Path) -> None:
    scale = "0." + "3" * 30
    rows = read_text(tmp_path, f"1 | 1:2 |0:{scale} 2:2 3:{scale} | 4:2\n2 | 5:2\n".encode())
    third = float(np.float32(1 / 3))
    assert entries(rows, 0) == {1: 2.0, 2: 2 * third, 3: float(np.float32(third * third)), 4: 2.0}
    assert entries(rows, 1) == {5: 2.0}


@pytest.mark.parametrize(("pack", "ending"), [(gzip.compress, ".gz"), (bz2.compress, ".bz2")])
def test_compressed_files_are_read_too(tmp_path: Path, pack: object, ending: str) -> None:
    path = tmp_path / f"a.vw{ending}"
    path.write_bytes(pack(b"1 | 3:2\n" * 100))  # type: ignore[operator]
    assert sum(len(rows) for rows in read(path, ReadOptions(), 300)) == 100
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match="archive"):
        list(read(path, ReadOptions(), 1 << 20))


def test_pieces_do_not_depend_on_their_size(tmp_path: Path) -> None:
    chance = random.Random(1)
    lines = [
        f"{chance.choice([-1, 1])} |f " + " ".join(f"w{chance.randrange(99)}:{chance.random()}" for _ in range(9))
        for _ in range(3_000)
    ]
    text = "\n".join(lines).encode()
    whole, parts = (read_text(tmp_path, text, piece_bytes=size) for size in (1 << 24, 20_000))
    for name in ("indptr", "indices", "values", "labels"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))
