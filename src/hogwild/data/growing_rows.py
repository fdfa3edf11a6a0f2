"""Rows that are appended piece by piece to arrays in one place, so that no second copy of them is ever in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hogwild.data.csr import NO_VALUES, NO_WEIGHTS, Array, CSRRows, Layout
from hogwild.data.reader import ReadOptions, Schema, fit_to_schema


class GrowingRows:
    """Sparse rows in the order in which they are added.

    The arrays are as large as the memory that may be used. The system gives memory to the part that is filled.

    >>> rows = CSRRows(np.array([0, 2, 3]), np.array([0, 4, 1], np.uint32), np.ones(3, np.float32),
    ...             np.array([1.0, -1.0]), NO_WEIGHTS, features=5, layout="sparse")
    >>> growing = GrowingRows(2**20)
    >>> growing.add(rows), growing.add(rows)
    (True, True)
    >>> growing.finished(Schema(0, 5, "binary", False), ReadOptions()).indptr
    array([0, 2, 3, 5, 6])
    """

    def __init__(self, room: int) -> None:
        self._room, self._entries, self._rows, self._features = room, 0, 0, 0
        self._indices = np.empty(max(1, room // 4), np.uint32)
        self._values: Array | None = None  # None while all values are one.
        self._ends: list[Array] = []
        self._labels: list[Array] = []
        self._weights: list[Array] = []

    def add(self, piece: CSRRows) -> bool:
        """Append rows, and return whether all rows fit into memory."""
        first, stop = self._entries, self._entries + piece.nonzeros
        ones = piece.layout == "binary" or bool((piece.values == 1).all())
        if self._values is None and not ones:
            self._values = np.empty(max(1, self._room // 4), np.float32)
            self._values[:first] = 1
        self._rows, self._features = self._rows + len(piece), max(self._features, piece.features)
        if not self._fits(stop):
            return False
        self._indices[first:stop] = piece.indices
        if self._values is not None:
            self._values[first:stop] = 1 if ones else piece.values
        self._ends.append(piece.indptr[1:] - piece.indptr[0] + first)
        self._labels.append(np.array(piece.labels, np.float64))
        self._weights.append(np.array(piece.weights))
        self._entries = stop
        return True

    def _fits(self, entries: int) -> bool:
        """Return whether entries fit, with offsets and labels of their rows, of which two copies exist for a time."""
        return entries * (4 if self._values is None else 8) + 32 * self._rows <= self._room

    def finished(self, shape: Schema, reading: ReadOptions) -> CSRRows:
        """Return all rows in the form of the schema, with indices counted from 0. Nothing can be added any more."""
        indices = self._indices[: self._entries]
        if shape.base:
            indices -= np.uint32(shape.base)
        values = NO_VALUES if self._values is None else self._values[: self._entries]
        weights = NO_WEIGHTS
        if shape.weighted:
            sizes = [len(labels) for labels in self._labels]
            weights = np.concatenate(
                [
                    part if len(part) else np.ones(size, np.float32)
                    for part, size in zip(self._weights, sizes, strict=True)
                ]
            )
        indptr = np.concatenate([np.zeros(1, np.int64), *self._ends])
        self._ends = []
        labels = np.concatenate(self._labels)
        self._labels, self._weights = [], []
        layout: Layout = "binary" if self._values is None else "sparse"
        found = CSRRows(indptr, indices, values, labels, weights, self._features - shape.base, layout)
        return replace(fit_to_schema(found, replace(shape, base=0), reading), features=shape.features)
