from __future__ import annotations

import bz2
import gzip
import random
from pathlib import Path

import numpy as np
import pytest
from backports import zstd
from damage import TIMES, damage
from hypothesis import given, settings
from hypothesis import strategies as st
from vw_reference import NotVWError, Row, parse

from hogwild.data.csr import CSRRows, concatenate
from hogwild.data.reader import ReadOptions
from hogwild.data.readers.vw import VW, read
from hogwild.errors import DataError

SHARED = Path(__file__).parents[3] / "shared" / "data"

GOOD = (
    "1 |user age:30 city=Ulm 7:0.5 |item:2.5 price:1e-3 12\n"
    "-1 0.5 'second|user age:41.25 city=Bonn\t8:12345.678901234567890123 9:1\n"
    "0.25 2 0 tag| 1 2:-3 3:.5 |77 4:1 5\n\n"
    "1 | a b c:1 d:2 a:3\r\n"
    "-1 |0:0.3333333333333333333333 1:1 2:2 x^y\n"
    "2 'it's |été à:1 ü:2\n"
).encode()


def assert_same(rows: CSRRows, expected: list[Row]) -> None:
    assert len(rows) == len(expected)
    weights = rows.weights if rows.weights.size else np.ones(len(rows))
    for row, (label, weight, wanted) in enumerate(expected):
        assert (rows.labels[row], weights[row]) == (label, weight)
        start, stop = rows.indptr[row], rows.indptr[row + 1]
        assert rows.indices[start:stop].tolist() == sorted(wanted)
        np.testing.assert_allclose(rows.values[start:stop], [wanted[index] for index in sorted(wanted)], 1e-6, 1e-6)


def reading_or_refusal(path: Path) -> CSRRows | DataError:
    try:
        return concatenate(list(read(path, ReadOptions(), 1 << 16)))
    except DataError as error:
        return error


def plain_reading(data: bytes) -> list[Row] | None:
    try:
        return parse(data)
    except NotVWError:
        return None


def assert_named(error: DataError, path: Path) -> None:
    assert str(path) in str(error)
    assert error.remedy


def test_the_undamaged_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "good.vw"
    path.write_bytes(GOOD)
    assert_same(concatenate(list(read(path, ReadOptions(), 1 << 16))), parse(GOOD))


@pytest.mark.parametrize("seed", range(TIMES))
def test_damaged_text_is_refused_or_still_valid(tmp_path: Path, seed: int) -> None:
    path, data = tmp_path / "damaged.vw", damage(GOOD, random.Random(seed))
    path.write_bytes(data)
    found, expected = reading_or_refusal(path), plain_reading(data)
    if isinstance(found, DataError):
        assert expected is None, f"what is valid was refused: {found}"
        assert_named(found, path)
    else:
        assert expected is not None, "what is damaged was accepted"
        assert_same(found, expected)


@pytest.mark.parametrize("seed", range(TIMES // 2))
def test_a_damaged_archive_is_refused_or_still_valid(tmp_path: Path, seed: int) -> None:
    pack, unpack, ending = (
        (gzip.compress, gzip.decompress, "gz"),
        (bz2.compress, bz2.decompress, "bz2"),
        (zstd.compress, zstd.decompress, "zst"),
    )[seed % 3]
    path, data = tmp_path / f"damaged.vw.{ending}", damage(pack(GOOD * 20), random.Random(seed))
    path.write_bytes(data)
    found = reading_or_refusal(path)
    if isinstance(found, DataError):
        assert_named(found, path)
    else:
        assert_same(found, parse(unpack(data)))


NAMES = st.sampled_from([b"a", b"bb", b"7", b"123456", "\u00e9t\u00e9".encode(), b"x^y", b"'q", b"#"])
NUMBERS = st.sampled_from([b"1", b"-0.5", b"3e-2", b"0", b"12345.678901234567890123", b".25"])
WORDS = st.tuples(NAMES, st.one_of(st.none(), NUMBERS)).map(lambda p: p[0] + (b"" if p[1] is None else b":" + p[1]))
SPACES = st.sampled_from([b"| ", b"|\t", b"|n ", b"|n:2 ", b"|12 ", b"|long:0.3333333333333333333 "])
PARTS = st.tuples(SPACES, st.lists(WORDS, max_size=6)).map(lambda p: p[0] + b" ".join(p[1]))
HEADS = st.sampled_from([b"1 ", b"-1 ", b"0.5 2 ", b"3 0.25 0 ", b"1 'tag", b"1 tag", b"2 3 'tag  "])
LINES = st.tuples(HEADS, st.lists(PARTS, min_size=1, max_size=3)).map(lambda p: p[0] + b" ".join(p[1]))


@given(st.lists(st.one_of(LINES, st.just(b"")), max_size=8), LINES, st.integers(1, 20), st.sampled_from([1, 300]))
@settings(max_examples=150, deadline=None)
def test_agrees_with_a_plain_reading(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], last: bytes, bits: int, piece_bytes: int
) -> None:
    text = b"\n".join([*lines, last])
    path = tmp_path_factory.mktemp("plain") / "a.vw"
    path.write_bytes(text)
    assert_same(concatenate(list(read(path, ReadOptions(bits=bits), piece_bytes))), parse(text, bits))


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data is not here")
def test_real_data_agrees_with_a_plain_reading() -> None:
    path = SHARED / "rcv1_small.vw.gz"
    rows = concatenate(list(VW.read(path, ReadOptions(), 1 << 24)))
    expected = parse(gzip.decompress(path.read_bytes()))
    assert len(rows) == len(expected) == 1_000
    assert_same(rows, expected)
