"""Assembly of the entries of columns into sorted rows, a few hundred rows at a time, which stay in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.hashing import sort_entries
from hogwild.data.memory_words import eight_bytes, four_bytes, single_float
from hogwild.jit import compiled

if TYPE_CHECKING:
    from hogwild.data.tables.column_entries import Entries

_BLOCK: Final = 512  # Rows that are assembled together.
_FEW: Final = 128  # Entries of a row up to which they are sorted by their first bits and then by insertion.
_BUCKETS: Final = 65  # One more than the buckets of the first bits.
_4, _8 = np.uint64(4), np.uint64(8)


def assembled(parts: Sequence[Entries], n_rows: int, features: int, binary: bool) -> tuple[Array, Array, Array]:
    """Return the offsets of rows, and their entries: sorted, and those of one index added up.

    With ``binary`` there are no values: entries of one index are one entry.

    >>> from hogwild.data.tables.column_entries import Entries
    >>> first = Entries(np.array([1, 1]), np.array([7, 2], np.uint32), np.array([0.5, 2.0], np.float32))
    >>> second = Entries(np.array([0, 2]), np.array([2, 1], np.uint32), np.empty(0, np.float32))
    >>> assembled([first, second], 2, 8, binary=False)
    (array([0, 1, 3]), array([7, 1, 2], dtype=uint32), array([0.5, 1. , 3. ], dtype=float32))
    """
    counts = [np.ascontiguousarray(part.counts, np.int64) for part in parts]
    indices = [np.ascontiguousarray(part.indices, np.uint32) for part in parts]
    values = [np.ascontiguousarray(part.values, np.float32) for part in parts]
    total = sum(map(len, indices))
    found = np.empty(n_rows + 1, np.int64), np.empty(total, np.uint32), np.empty(0 if binary else total, np.float32)
    _assemble(
        _addresses(counts), _addresses(indices), _addresses(values), n_rows,
        max(0, int(features - 1).bit_length() - 6), *found,
    )  # fmt: skip
    kept = int(found[0][-1])
    return found[0], found[1][:kept], found[2][:kept]


def _addresses(arrays: Sequence[Array]) -> Array:
    """Return the address of each array, and 0 for an empty one."""
    return np.array([array.ctypes.data if array.size else 0 for array in arrays], np.uint64)


@compiled
def _assemble(
    counts: Array, indices: Array, values: Array, rows: int, shift: int, indptr: Array, to_indices: Array,
    to_values: Array,
) -> None:  # fmt: skip
    columns, ends, places = counts.size, np.empty(_BLOCK + 1, np.int64), np.empty(_BUCKETS, np.int64)
    some, numbers, binary = np.empty(0, np.uint32), np.empty(0, np.float32), to_values.size == 0
    sorted_numbers = np.empty(_FEW, np.float32)
    indptr[0], out = 0, 0
    for first in range(0, rows, _BLOCK):
        count = min(_BLOCK, rows - first)
        for row in range(count + 1):
            ends[row] = 0
        for column in range(columns):
            at = counts[column] + np.uint64(first) * _8
            for row in range(count):
                ends[row + 1] += np.int64(eight_bytes(at))
                at += _8
        for row in range(count):
            ends[row + 1] += ends[row]
        if ends[count] > some.size:
            some = np.empty(2 * ends[count], np.uint32)
            numbers = np.empty(0 if binary else 2 * ends[count], np.float32)
        # ends[row] is the next free place of a row, and in the end the place after its last entry.
        for column in range(columns):
            at, index, value = counts[column] + np.uint64(first) * _8, indices[column], values[column]
            for row in range(count):
                for _ in range(np.int64(eight_bytes(at))):
                    some[ends[row]] = four_bytes(index)
                    index += _4
                    if not binary:
                        numbers[ends[row]] = 1.0
                        if value:
                            numbers[ends[row]] = single_float(value)
                            value += _4
                    ends[row] += 1
                at += _8
            indices[column], values[column] = index, value
        start = 0
        for row in range(count):
            stop = ends[row]
            if stop - start <= _FEW:
                out = _few_sorted(some, numbers, start, stop, shift, places, sorted_numbers, out, to_indices, to_values)
            else:
                out = _many_sorted(some, numbers, start, stop, out, to_indices, to_values)
            indptr[first + row + 1] = out
            start = stop


@compiled
def _few_sorted(
    some: Array, numbers: Array, start: Any, stop: Any, shift: Any, places: Array, by_bits: Array, out: Any,
    indices: Array, values: Array,
) -> Any:  # fmt: skip
    """Sort the entries of a row by their first bits, move each by a few places, and return the next free place."""
    binary = values.size == 0
    for bucket in range(_BUCKETS):
        places[bucket] = 0
    for at in range(start, stop):
        places[(some[at] >> shift) + 1] += 1
    before = out
    for bucket in range(_BUCKETS):
        before += places[bucket]
        places[bucket] = before
    for at in range(start, stop):
        bucket = some[at] >> shift
        to = places[bucket]
        indices[to] = some[at]
        if not binary:
            by_bits[to - out] = numbers[at]
        places[bucket] = to + 1
    kept = out
    for at in range(out, out + stop - start):
        found, to = indices[at], kept
        number = np.float32(1.0) if binary else by_bits[at - out]
        while to > out and indices[to - 1] > found:
            to -= 1
        if to > out and indices[to - 1] == found:
            if not binary:
                values[to - 1] += number
            continue
        for k in range(kept, to, -1):
            indices[k] = indices[k - 1]
            if not binary:
                values[k] = values[k - 1]
        indices[to] = found
        if not binary:
            values[to] = number
        kept += 1
    return kept


@compiled
def _many_sorted(some: Array, numbers: Array, start: Any, stop: Any, out: Any, indices: Array, values: Array) -> Any:
    """Sort the entries of a long row, and return the next free place."""
    binary = values.size == 0
    if binary:
        numbers = np.ones(stop, np.float32)
    sort_entries(some, numbers, np.uint64(start), np.uint64(stop))
    at = start
    while at < stop:
        index, total = some[at], 0.0
        while at < stop and some[at] == index:
            total += numbers[at]
            at += 1
        indices[out] = index
        if not binary:
            values[out] = total
        out += 1
    return out
