"""Columns that rows have, of very many that they could have: rows are numbered by them, as are the weights of a model.

A set of columns is one bit for each column, and the number of columns before each word of 64 bits. So a number is found
in the same time for any number of columns, and a billion columns take 190 MB. The bits are the work of compiled code,
:mod:`hogwild.data.column_bits`, which is imported for many rows only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hogwild.data.csr import Array, CSRRows
from hogwild.data.slices import in_slices
from hogwild.lazy import cached_property

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
        from hogwild.data import column_bits

        bits = np.zeros(-(-rows.features // 64), np.uint64)
        start, stop = int(rows.indptr[0]), int(rows.indptr[-1])
        column_bits.mark(rows.indices[start:stop], bits)
        before = column_bits.counts(bits)
        columns = np.empty(int(before[-1]), rows.indices.dtype)
        column_bits.fill(bits, columns)
        found = cls(columns, rows.features)
        found.__dict__["_bits"] = bits, before
        return found

    def __len__(self) -> int:
        return len(self.columns)

    def renumber(self, rows: CSRRows) -> CSRRows:
        """Return the rows with columns numbered in this order, and without the entries of other columns."""
        from hogwild.data import column_bits

        start, stop = int(rows.indptr[0]), int(rows.indptr[-1])
        if rows.layout == "dense":
            values = rows.values[start:stop].reshape(len(rows), -1)[:, self.columns].reshape(-1)
            return replace(rows, indptr=np.arange(len(rows) + 1) * len(self), values=values, features=len(self))
        bits, before = self._bits
        indices = np.empty(stop - start, rows.indices.dtype)
        old = rows.indices[start:stop]

        def renumber(part: slice) -> int:
            return int(column_bits.renumber(old[part], bits, before, indices[part]))

        unknown = sum(in_slices(len(indices), renumber))
        values, indptr = rows.values[start:stop] if rows.values.size else rows.values, rows.indptr - start
        if unknown:
            known = indices < len(self)
            values = values[known] if values.size else values
            indptr = np.concatenate([[0], np.cumsum(known)])[indptr]
            indices = indices[known]
        return replace(rows, indptr=indptr, indices=indices, values=values, features=len(self))

    def numbers_of(self, columns: Array) -> tuple[Array, Array]:
        """Return the numbers of a few columns, and which of the columns are there.

        >>> PresentColumns(np.array([2, 70], np.uint32), 100).numbers_of(np.array([70, 3]))
        (array([1, 1]), array([ True, False]))
        """
        numbers = np.minimum(np.searchsorted(self.columns, columns.astype(self.columns.dtype)), len(self.columns) - 1)
        return numbers, self.columns[numbers] == columns

    def expand(self, weights: Array) -> Array:
        """Return rows of weights for all columns: zeros for those that no row has."""
        found = np.zeros((self.features, *weights.shape[1:]), weights.dtype)
        found[self.columns] = weights
        return found

    @cached_property
    def _bits(self) -> tuple[Array, Array]:
        from hogwild.data import column_bits

        bits = np.zeros(-(-self.features // 64), np.uint64)
        column_bits.mark(self.columns, bits)
        return bits, column_bits.counts(bits)

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
