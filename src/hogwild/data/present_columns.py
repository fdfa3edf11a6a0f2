"""Columns that rows have, of very many that they could have: rows are numbered by them, as are the weights of a model.

A set of columns is one bit for each column, and the number of columns before each word of 64 bits. So a number is found
in the same time for any number of columns, and a billion columns take 190 MB.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hogwild.data.csr import Array, CSRRows
from hogwild.data.slices import in_slices
from hogwild.jit import compiled, compiled_part

if TYPE_CHECKING:
    from hogwild.data.in_memory import InMemoryDataset

MANY = 2**24  # number of columns from which on columns that no row has are left out
MOST = 2**34  # number of columns above which the bits would take gigabytes


@dataclass(frozen=True, eq=False)
class PresentColumns:
    """Columns that rows have, in order, of ``features`` columns.

    >>> some = PresentColumns(np.array([2, 70], np.uint32), 100)
    >>> from hogwild.data.csr import NO_WEIGHTS
    >>> rows = CSRRows(np.array([0, 2, 3]), np.array([1, 70, 2], np.uint32), np.array([5.0, 6.0, 7.0]), np.zeros(2),
    ...     NO_WEIGHTS, 100, "sparse")
    >>> found = some.renumber(rows)
    >>> found.indices, found.values, found.indptr, found.features
    (array([1, 0], dtype=uint32), array([6., 7.]), array([0, 1, 2]), 2)
    """

    columns: Array
    features: int

    @classmethod
    def of(cls, rows: CSRRows) -> PresentColumns:
        """Return the columns that rows have."""
        bits = np.zeros(-(-rows.features // 64), np.uint64)
        start, stop = int(rows.indptr[0]), int(rows.indptr[-1])
        _mark(rows.indices[start:stop], bits)
        before = _counts(bits)
        columns = np.empty(int(before[-1]), rows.indices.dtype)
        _list(bits, columns)
        found = cls(columns, rows.features)
        found.__dict__["_bits"] = bits, before
        return found

    def __len__(self) -> int:
        return len(self.columns)

    def renumber(self, rows: CSRRows) -> CSRRows:
        """Return the rows with columns numbered in this order, and without the entries of other columns."""
        bits, before = self._bits
        start, stop = int(rows.indptr[0]), int(rows.indptr[-1])
        indices = np.empty(stop - start, rows.indices.dtype)
        old = rows.indices[start:stop]
        unknown = sum(in_slices(len(indices), lambda part: int(_renumber(old[part], bits, before, indices[part]))))
        values, indptr = rows.values[start:stop] if rows.values.size else rows.values, rows.indptr - start
        if unknown:
            known = indices < len(self)
            values = values[known] if values.size else values
            indptr = np.concatenate([[0], np.cumsum(known)])[indptr]
            indices = indices[known]
        return replace(rows, indptr=indptr, indices=indices, values=values, features=len(self))

    def expand(self, weights: Array) -> Array:
        """Return rows of weights for all columns: zeros for those that no row has."""
        found = np.zeros((self.features, *weights.shape[1:]), weights.dtype)
        found[self.columns] = weights
        return found

    @cached_property
    def _bits(self) -> tuple[Array, Array]:
        bits = np.zeros(-(-self.features // 64), np.uint64)
        _mark(self.columns, bits)
        return bits, _counts(bits)

    def __reduce__(self) -> tuple[Callable[..., PresentColumns], tuple[Array, int]]:
        """Pickle without the bits."""
        return PresentColumns, (self.columns, self.features)


def mostly_absent(features: int, nonzeros: int) -> bool:
    """Return whether there are many features, and most of them are in no row.

    >>> mostly_absent(10**9, 3), mostly_absent(10**9, 10**10), mostly_absent(1000, 3)
    (True, False, False)
    """
    return MANY <= features <= MOST and features > nonzeros > 0


def without_absent(data: InMemoryDataset) -> InMemoryDataset:
    """Return data whose columns are those that some row has, if it has many more; else the data itself."""
    rows = data.rows
    numbered = data.table is not None or data.columns is not None
    if numbered or rows.layout == "dense" or not mostly_absent(rows.features, rows.nonzeros):
        return data
    columns = PresentColumns.of(rows)
    return data.with_columns(columns)


@compiled_part
def _ones(word: Any) -> Any:
    """Return the number of ones in 64 bits."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@compiled
def _mark(indices: Any, bits: Any) -> None:
    for i in range(indices.size):
        column = np.uint64(indices[i])
        bits[column >> np.uint64(6)] |= np.uint64(1) << (column & np.uint64(63))


@compiled
def _counts(bits: Any) -> Any:
    """Return the number of columns before each word, and of all after the last."""
    before = np.empty(bits.size + 1, np.uint32)
    total = np.uint64(0)
    for word in range(bits.size):
        before[word] = total
        total += _ones(bits[word])
    before[bits.size] = total
    return before


@compiled
def _list(bits: Any, columns: Any) -> None:
    at = 0
    for word in range(bits.size):
        left = bits[word]
        for bit in range(64):
            if (left >> np.uint64(bit)) & np.uint64(1):
                columns[at] = np.uint64(word) * np.uint64(64) + np.uint64(bit)
                at += 1


@compiled
def _renumber(indices: Any, bits: Any, before: Any, numbers: Any) -> Any:
    """Write the number of each column, the largest number for a column that is not there; return how many are not."""
    unknown = 0
    for i in range(indices.size):
        column = np.uint64(indices[i])
        place, bit = column >> np.uint64(6), column & np.uint64(63)
        word = bits[place] if place < bits.size else np.uint64(0)
        if (word >> bit) & np.uint64(1):
            numbers[i] = before[place] + _ones(word & ((np.uint64(1) << bit) - np.uint64(1)))
        else:
            numbers[i] = np.uint32(0xFFFFFFFF)
            unknown += 1
    return unknown
