"""Compiled parser of Criteo's lines: cells are hashed where they are, without a copy of their text.

A line is a label, 13 whole numbers and 26 categories with tabs between them. A category is the feature ``C3=value``.
A number is the feature of its bin, ``I3=bin`` (:mod:`hogwild.data.tables.log_bins`). Empty cells make no feature. All
values are one, also if two features of a row have the same column.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.hashing import hash_after, mixed
from hogwild.data.memory_words import byte, eight_bytes, trailing_zeros
from hogwild.data.readers.parse_number import BAD, LONG, digits, number
from hogwild.data.tables.column_entries import Column
from hogwild.data.tables.log_bins import log_bin
from hogwild.jit import compiled, compiled_part

NUMBERS, CATEGORIES = 13, 26
COLUMNS = NUMBERS + CATEGORIES
# Reason why the parser stopped: none, or what is invalid.
NOTHING, LABEL, NUMBER, MISSING, SURPLUS = range(5)
LARGEST_BIN: Final = 4100  # The bin of the largest number of 64 bits is 4096.

_0, _1, _3, _4, _8 = (np.uint64(n) for n in (0, 1, 3, 4, 8))
_TABS: Final = np.uint64(0x0909090909090909)
_NEWLINES: Final = np.uint64(0x0A0A0A0A0A0A0A0A)
_ONES: Final = np.uint64(0x0101010101010101)
_HIGH: Final = np.uint64(0x8080808080808080)
_TAB, _NEWLINE, _RETURN, _MINUS = 9, 10, 13, 45
_SMALL: Final = 4096.0  # Whole numbers below this one have their bins in a table.
_BUCKETS: Final = 65  # One more than the buckets by which the cells of a row are sorted.


@compiled_part
def _first_bits(mask: np.uint64) -> np.uint64:
    """Return the number of bits that are left out so that a column has six bits or fewer."""
    shift = _0
    while mask >> shift >= np.uint64(_BUCKETS - 1):
        shift += _1
    return shift


@compiled_part
def _cell_end(at: np.uint64, stop: np.uint64) -> Any:
    """Return the first tab or newline from an address on, eight bytes at a time."""
    while at + _8 <= stop:
        word = eight_bytes(at)
        tabs, newlines = word ^ _TABS, word ^ _NEWLINES
        found = (((tabs - _ONES) & ~tabs) | ((newlines - _ONES) & ~newlines)) & _HIGH
        if found != _0:
            return at + (trailing_zeros(found) >> _3)
        at += _8
    while byte(at) != _TAB and byte(at) != _NEWLINE:
        at += _1
    return at


@compiled_part
def _hashed(at: np.uint64, end: np.uint64, stop: np.uint64, prefix: np.uint64, size: np.uint64) -> Any:
    """Return the MurmurHash3 of a prefix of 3 or 4 bytes and of the text between two addresses."""
    if size == _4:
        return hash_after(mixed(_0, prefix), _0, size, at, end, stop)
    return hash_after(_0, prefix, size, at, end, stop)


@compiled_part
def _number_at(at: np.uint64, end: np.uint64, stop: np.uint64) -> tuple[Any, bool]:
    """Return the number between two addresses, and whether it is a number."""
    negative = byte(at) == _MINUS
    start = at + _1 if negative else at
    whole, after = digits(start, stop, _0)
    if after == end and start < end and end - start <= np.uint64(18):
        return (-np.float64(whole) if negative else np.float64(whole)), True
    value, after, known = number(at, stop)
    return value, after == end and known != BAD and known != LONG and bool(np.isfinite(value))


@compiled
def parse(
    start: np.uint64, stop: np.uint64, labelled: bool, mask: Any, prefixes: Array, sizes: Array, binned: Array,
    bins: Array, row: Any, entry: Any, ends: Array, labels: Array, indices: Array,
) -> tuple[Any, Any, int, Any]:  # fmt: skip
    """Parse the lines from address ``start`` to ``stop`` into the arrays, from slots ``row`` and ``entry`` on.

    ``binned`` has the hashed column of each bin of each number, and ``bins`` the bins of small numbers. The function
    returns the next free slots, and the reason and the position of the stop.
    """
    at, cells, places = start, np.empty(COLUMNS, np.uint64), np.empty(_BUCKETS, np.int64)
    shift = _first_bits(mask)
    while at < stop:
        if byte(at) == _NEWLINE or (byte(at) == _RETURN and byte(at + _1) == _NEWLINE):
            at += _1
            continue
        labels[row] = 0.0
        if labelled:
            value, end, known = number(at, stop)
            if known == BAD or byte(end) != _TAB:
                return row, entry, LABEL, at
            labels[row] = value
            at = end + _1
        count = 0
        # Numbers and categories have loops of their own, because a processor predicts the ends of like cells better.
        for column in range(NUMBERS):
            end = _cell_end(at, stop)
            if byte(end) == _NEWLINE:
                return row, entry, MISSING, at
            if end > at:
                value, is_number = _number_at(at, end, stop)
                if not is_number:
                    return row, entry, NUMBER, at
                # Small whole numbers, which are most, have their bins in a table.
                small = np.int64(value) if 0.0 <= value < _SMALL else np.int64(0)
                bin = np.int64(bins[small]) if value == small else np.int64(log_bin(value))
                cells[count] = np.uint64(binned[column, bin + LARGEST_BIN])
                count += 1
            at = end + _1
        for column in range(NUMBERS, COLUMNS):
            end = _cell_end(at, stop)
            last = end
            if byte(end) == _NEWLINE:
                if column < COLUMNS - 1:
                    return row, entry, MISSING, at
                if end > at and byte(end - _1) == _RETURN:
                    last = end - _1
            elif column == COLUMNS - 1:
                return row, entry, SURPLUS, end
            if last > at:
                cells[count] = _hashed(at, last, stop, prefixes[column], sizes[column]) & mask
                count += 1
            at = end + _1
        # The cells are sorted by their first bits, and then moved by a few places.
        for bucket in range(_BUCKETS):
            places[bucket] = 0
        for k in range(count):
            places[(cells[k] >> shift) + _1] += 1
        before = 0
        for bucket in range(_BUCKETS):
            before += places[bucket]
            places[bucket] = before
        for k in range(count):
            bucket = cells[k] >> shift
            indices[entry + places[bucket]] = cells[k]
            places[bucket] += 1
        kept = entry
        for k in range(entry, entry + count):
            found, to = indices[k], kept
            while to > entry and indices[to - 1] > found:
                indices[to] = indices[to - 1]
                to -= 1
            if to == entry or indices[to - 1] != found:
                indices[to] = found
                kept += 1
            else:  # The row has this column already: entries that were moved go back.
                for k in range(to, kept):
                    indices[k] = indices[k + 1]
        entry = kept
        row += 1
        ends[row] = entry
    return row, entry, NOTHING, at


def prefixes() -> tuple[Array, Array]:
    """Return the bytes before the value in the name of each feature, as a word, and their number."""
    names = [f"I{k}=" for k in range(1, NUMBERS + 1)] + [f"C{k}=" for k in range(1, CATEGORIES + 1)]
    words = [int.from_bytes(name.encode(), "little") for name in names]
    return np.array(words, np.uint64), np.array([len(name) for name in names], np.uint64)


def binned_columns(bits: int) -> Array:
    """Return the column of each bin of each number.

    >>> from hogwild.data.hashing import column_of
    >>> int(binned_columns(10)[2, LARGEST_BIN + 5]) == column_of("I3=5", 10)
    True
    """
    bins = [f"={bin}" for bin in range(-LARGEST_BIN, LARGEST_BIN + 1)]
    return np.stack([Column(None, f"I{k}", 2**bits - 1).hashed(*bins) for k in range(1, NUMBERS + 1)])
