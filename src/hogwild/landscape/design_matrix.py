"""Design matrices: rows of a data set as matrices in double precision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from hogwild.data.csr import Array, CSRRows, compact
from hogwild.data.dataset import Dataset


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Block of rows: a dense or sparse matrix, the label of each row and the weight of each row."""

    matrix: Any
    labels: Array
    weights: Array


class Tables:
    """All rows of a data set: one table if the data is in memory, else one table per chunk as it is read.

    >>> from hogwild.data import as_dataset
    >>> [table.matrix for table in Tables(as_dataset(([[1.0, 0.0], [0.0, 2.0]], [1, -1])), features=3)]
    [array([[1., 0., 0.],
           [0., 2., 0.]])]
    """

    def __init__(self, data: Dataset, features: int) -> None:
        self.n_rows, self.features = data.n_rows, features
        whole = _all_of(data)
        self._data = data
        self._kept = None if whole is None else table_of(*whole, features)

    def __iter__(self) -> Iterator[Table]:
        if self._kept is not None:
            yield self._kept
            return
        walk = self._data.in_order()
        for number in range(len(walk)):
            chunk = walk[number]
            yield table_of(chunk.rows, chunk.order, self.features)
            walk.done(number)


def table_of(rows: CSRRows, order: Array, features: int) -> Table:
    """Return the given rows in the given order, as a matrix with as many columns as the model."""
    here, order = compact(rows), order.astype(np.int64)
    matrix: Any
    if rows.layout == "dense":
        matrix = np.zeros((len(order), features))
        matrix[:, : rows.features] = here.values.reshape(len(rows), rows.features)[order]
    else:
        values = here.values.astype(np.float64) if rows.layout == "sparse" else np.ones(len(here.indices))
        matrix = csr_array((values, here.indices.astype(np.int64), here.indptr), shape=(len(rows), features))[order]
    weights = here.weights[order].astype(np.float64) if here.weights.size else np.ones(len(order))
    return Table(matrix, here.labels[order], weights)


def deviations(tables: Iterable[Table], features: int) -> Array:
    """Return the standard deviation of each column, with rows weighted by their weights.

    >>> matrix = np.array([[0.0, 5.0], [2.0, 5.0]])
    >>> deviations([Table(matrix, np.zeros(2), np.ones(2)), Table(matrix, np.zeros(2), np.ones(2))], 2)
    array([1., 0.])
    """
    total, sums = 0.0, np.zeros(features)
    for table in tables:
        total += float(table.weights.sum())
        sums += table.matrix.T @ table.weights
    middle = sums / total if total else sums
    squares = np.zeros(features)
    for table in tables:
        squares += _squares(table, middle)
    return np.asarray(np.sqrt(squares / total if total else squares))


def _squares(table: Table, middle: Array) -> Array:
    """Return the weighted sum of squared deviations from the mean per column, with unstored cells as zero."""
    if isinstance(table.matrix, np.ndarray):
        return np.asarray(table.weights @ np.square(table.matrix - middle))
    there, weights = table.matrix.copy(), table.weights
    apart = np.square(there.data - middle[there.indices])
    there.data = np.ones(len(there.data))
    absent = weights.sum() - there.T @ weights
    there.data = apart
    return np.asarray(there.T @ weights + absent * np.square(middle))


def _all_of(data: Dataset) -> tuple[CSRRows, Array] | None:
    kept = data.at_once()
    whole = None if kept is None else kept.in_order().whole()
    return None if whole is None else (whole.rows, whole.order)
