from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils import murmurhash3_32

from hogwild.data.hashing import MOST_BITS, column_of, columns, hash_joined, hash_name, merge_duplicates, murmur3
from hogwild.errors import ParameterError


def as_bytes(text: bytes) -> np.ndarray:
    return np.frombuffer(text or b"\0", np.uint8)


@given(st.binary(max_size=40), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_murmur3_agrees_with_another_implementation(text: bytes, seed: int) -> None:
    expected = murmurhash3_32(text, seed=seed, positive=True)
    assert int(murmur3(as_bytes(text), 0, len(text), np.uint64(seed))) == expected


@given(st.binary(max_size=9), st.binary(max_size=9), st.binary(max_size=9))
@settings(deadline=None)
def test_only_the_stretch_asked_for_is_hashed(before: bytes, text: bytes, behind: bytes) -> None:
    whole = as_bytes(before + text + behind)
    expected = murmurhash3_32(text, seed=0, positive=True)
    assert int(murmur3(whole, len(before), len(before) + len(text), np.uint64(0))) == expected


@given(st.integers(0, 10**25), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_digits_are_a_number_plus_the_namespace(number: int, namespace: int) -> None:
    text = str(number).encode()
    assert int(hash_name(as_bytes(text), 0, len(text), np.uint64(namespace))) == (number + namespace) % 2**32


@pytest.mark.parametrize("text", ["1a", "a1", "-1", "1.0", "1 ", "²"])
def test_anything_but_digits_is_hashed(text: str) -> None:
    encoded = text.encode()
    assert int(hash_name(as_bytes(encoded), 0, len(encoded), np.uint64(5))) == murmurhash3_32(
        encoded, seed=5, positive=True
    )


@given(st.text(max_size=8), st.lists(st.text(max_size=8), max_size=5))
@settings(deadline=None)
def test_joined_names_hash_like_whole_names(prefix: str, names: list[str]) -> None:
    encoded = [name.encode() for name in names]
    offsets = np.cumsum([0, *map(len, encoded)])
    out = np.empty(len(names), np.uint32)
    hash_joined(np.frombuffer(prefix.encode(), np.uint8), as_bytes(b"".join(encoded)), offsets, out)
    assert out.tolist() == [column_of_32(prefix + name) for name in names]


def column_of_32(name: str) -> int:
    encoded = name.encode()
    if all(48 <= byte <= 57 for byte in encoded):
        return int(encoded or b"0") % 2**32
    return int(murmurhash3_32(encoded, seed=0, positive=True))


def test_a_namespace_of_digits_is_a_number_too() -> None:
    assert column_of("5", namespace="12") == 17


@pytest.mark.parametrize("bits", [0, -1, MOST_BITS + 1])
def test_bits_out_of_range_are_refused(bits: int) -> None:
    with pytest.raises(ParameterError, match="'bits'"):
        columns(bits)


@given(st.lists(st.lists(st.tuples(st.integers(0, 60), st.integers(-8, 8)), max_size=90), min_size=1, max_size=6))
@settings(deadline=None)
def test_merging_sorts_and_adds(rows: list[list[tuple[int, int]]]) -> None:
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.array([index for row in rows for index, _ in row], np.uint32)
    values = np.array([value for row in rows for _, value in row], np.float32)
    merge_duplicates(indptr, indices, values)
    for number, row in enumerate(rows):
        expected: dict[int, int] = {}
        for index, value in row:
            expected[index] = expected.get(index, 0) + value
        start, stop = indptr[number], indptr[number + 1]
        assert indices[start:stop].tolist() == sorted(expected)
        assert values[start:stop].tolist() == [expected[index] for index in sorted(expected)]


def test_merging_a_long_row_is_right() -> None:
    random = np.random.default_rng(0)
    indices = random.integers(0, 2**32 - 1, 50_000).astype(np.uint32)
    indptr, values = np.array([0, len(indices)]), indices.astype(np.float32)
    expected = np.unique(indices)
    merge_duplicates(indptr, indices, values)
    np.testing.assert_array_equal(indices[: indptr[1]], expected)
