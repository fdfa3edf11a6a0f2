"""Rows: checked arrays in compressed sparse row (CSR) form. Kernels get the data in this form only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Layout = Literal["sparse", "binary", "dense"]
Array = NDArray[Any]

NO_INDICES = np.empty(0, np.uint32)
NO_VALUES = np.empty(0, np.float32)
NO_WEIGHTS = np.empty(0, np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class CSRRows:
    """Consecutive rows with their labels, in compressed sparse row form.

    The non-zeros of row ``i`` are at ``indptr[i]:indptr[i + 1]`` of ``indices`` and ``values``. These offsets are
    absolute, so a slice of rows is a view. In the ``binary`` layout every value is one and ``values`` is empty. In the
    ``dense`` layout every column is present, in order, and ``indices`` is empty. Within a row the indices rise
    strictly.

    >>> rows = CSRRows(np.array([0, 2, 3]), np.array([0, 4, 1], np.uint32), np.ones(3, np.float32),
    ...             np.array([1.0, -1.0]), NO_WEIGHTS, features=5, layout="sparse")
    >>> len(rows), rows.nonzeros, len(rows[1:])
    (2, 3, 1)
    """

    indptr: Array  # Offsets of the rows, int64, one element more than there are rows.
    indices: Array  # Column of each entry, uint32 or uint64, empty in the dense layout.
    values: Array  # Value of each entry, float32 or float64, empty in the binary layout.
    # Label of each row: float64 as read, float32 (or the precision that the caller asks for) once a problem has encoded
    # it.
    labels: Array
    # Weight of each row, float32, or float64 where the caller asks for it. Empty when every row weighs one.
    weights: Array
    features: int
    layout: Layout

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def nonzeros(self) -> int:
        """The number of stored entries."""
        return int(self.indptr[-1] - self.indptr[0])

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array, Array]:
        """Offsets, indices, values, labels and weights as read-only views, for kernels.

        To the compiler a writable array has another type than a read-only array. Each further type costs seconds of
        compilation, and memory.
        """
        views = self.indptr.view(), self.indices.view(), self.values.view(), self.labels.view(), self.weights.view()
        for view in views:
            view.flags.writeable = False
        return views

    def __getitem__(self, part: slice) -> CSRRows:
        start, stop, step = part.indices(len(self))
        if step != 1:
            raise IndexError("rows are sliced without a step")
        stop = max(start, stop)
        return replace(
            self,
            indptr=self.indptr[start : stop + 1],
            labels=self.labels[start:stop],
            weights=self.weights[start:stop] if self.weights.size else self.weights,
        )


def bytes_of(rows: CSRRows) -> int:
    """Return the number of bytes that rows take."""
    per_entry = rows.values.itemsize * bool(rows.values.size) + rows.indices.itemsize * bool(rows.indices.size)
    return rows.nonzeros * per_entry + rows.indptr.nbytes + rows.labels.nbytes + rows.weights.nbytes


def concatenate(pieces: list[CSRRows]) -> CSRRows:
    """Concatenate pieces of one layout; ``features`` of the result is the largest among the pieces."""
    if len(pieces) == 1:
        return pieces[0]
    parts = [compact(piece) for piece in pieces]
    offsets = np.cumsum([0, *(piece.nonzeros for piece in parts)])
    weighted = any(piece.weights.size for piece in parts)
    weights = [p.weights if p.weights.size else np.ones(len(p), np.float32) for p in parts]
    return CSRRows(
        np.concatenate([[0], *(piece.indptr[1:] + at for piece, at in zip(parts, offsets, strict=False))]).astype(
            np.int64
        ),
        np.concatenate([piece.indices for piece in parts]),
        np.concatenate([piece.values for piece in parts]),
        np.concatenate([piece.labels for piece in parts]),
        np.concatenate(weights) if weighted else NO_WEIGHTS,
        max(piece.features for piece in parts),
        parts[0].layout,
    )


def compact(rows: CSRRows) -> CSRRows:
    """Return the same rows with offsets from zero, and without entries before or after them.

    The indices and values of the result are views. Only the offsets are copied.
    """
    start, stop = int(rows.indptr[0]), int(rows.indptr[-1])
    return replace(
        rows,
        indptr=rows.indptr - start,
        indices=rows.indices[start:stop] if rows.layout != "dense" else rows.indices,
        values=rows.values[start:stop] if rows.layout != "binary" else rows.values,
    )
