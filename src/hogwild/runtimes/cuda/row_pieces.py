"""Rows that do not fit into the memory of a GPU: pieces of them are copied there while others are trained on.

A batch has pieces from random places of the rows, and its rows are visited in random order. The rows are in pinned
memory, so that the GPU's copy engine fetches them at the rate of the bus.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from hogwild.data.csr import Array, CSRRows, bytes_of
from hogwild.data.dataset import EpochPlan
from hogwild.data.random_order import RandomOrder
from hogwild.kernels.copy_rows_cuda import ENTRY, ROW, TO_ENTRY, TO_ROW, CopyStream, copy_rows
from hogwild.kernels.cuda_device import DeviceRows, device_array
from hogwild.runtimes.cuda.row_stream import Batch

PIECE = 2**21  # bytes of neighbouring rows that are copied together
MOST_BATCHES = 2**20  # of an epoch, for numbers of orders
SPARE = 8  # part of an array that is reserved besides, so that a longer batch finds room


class RowPieces:
    """Pieces of rows on their way to a GPU.

    ``source`` has the rows where the GPU can read them. A batch takes about ``most`` bytes, and two are there.
    """

    def __init__(self, rows: CSRRows, source: DeviceRows, most: int) -> None:
        self._rows, self._source, self._copies = rows, source, CopyStream()
        size = max(1, bytes_of(rows))
        self._each = max(1, PIECE * len(rows) // size)  # rows of a piece
        self._most = max(1, most * len(rows) // size)  # rows of a batch
        self._memory: list[DeviceRows | None] = [None, None]

    def close(self) -> None:
        """Wait for the last copies."""
        self._copies.close()

    @property
    def batch_rows(self) -> int:
        """The largest number of rows of a batch in stored order."""
        return min(self._most, len(self._rows))

    def batches(self, plan: EpochPlan, order: RandomOrder, chunk: int) -> Iterator[Batch]:
        """Yield batches of an epoch from a chunk on. A batch is gone when the next one is asked for."""
        pieces = RandomOrder(-(-len(self._rows) // self._each), order.seed, order.number)[:].astype(np.int64)
        starts = pieces * self._each
        ends = np.minimum(starts + self._each, len(self._rows))
        places = np.concatenate([[0], np.cumsum(ends - starts)])  # of the pieces in the epoch
        bounds = [chunk]
        while bounds[-1] < len(plan.starts) - 1:
            last = int(np.searchsorted(plan.starts, plan.starts[bounds[-1]] + self._most, side="right")) - 1
            bounds.append(min(len(plan.starts) - 1, max(bounds[-1] + 1, last)))
        parts = []
        for first, until in pairwise(plan.starts[bounds].tolist()):
            some = slice(np.searchsorted(places, first, side="right") - 1, np.searchsorted(places, until))
            begin, stop = starts[some].copy(), ends[some].copy()
            begin[0] += first - places[some.start]
            stop[-1] -= places[some.stop] - until
            parts.append((begin, stop))
        for (rows, count), (first, end) in zip(self._copied(parts), pairwise(bounds), strict=True):
            yield Batch(rows, RandomOrder(count, order.seed, order.number * MOST_BATCHES + first), 0, count, end)

    def in_order(self) -> Iterator[tuple[DeviceRows, int]]:
        """Yield all rows in stored order, with the number of rows of each batch."""
        parts = []
        for first in range(0, len(self._rows), self._most):
            last = min(first + self._most, len(self._rows))
            begin = np.arange(first, last, self._each)
            parts.append((begin, np.minimum(begin + self._each, last)))
        return self._copied(parts)

    def _copied(self, parts: list[tuple[Array, Array]]) -> Iterator[tuple[DeviceRows, int]]:
        """Yield batches, each of the rows from several starts to several ends, with their number of rows.

        The next batch is copied while the caller uses one, and the caller waits for the GPU before it asks for another.
        """
        if not parts:
            return
        ready = self._begin(0, *parts[0])
        for turn in range(len(parts)):
            self._copies.wait()
            target, pieces = ready
            if turn + 1 < len(parts):
                ready = self._begin((turn + 1) % 2, *parts[turn + 1])
            copy_rows(self._source, pieces, target)
            yield target, int(pieces[-1, TO_ROW])

    def _begin(self, turn: int, begin: Array, stop: Array) -> tuple[DeviceRows, Array]:
        """Begin to copy the entries of a batch; return its memory and the list of its pieces."""
        indptr, layout = self._rows.indptr, self._rows.layout
        pieces = np.zeros((len(begin) + 1, 4), np.int64)
        pieces[:-1, ROW], pieces[:-1, ENTRY] = begin, indptr[begin] - indptr[0]
        np.cumsum(stop - begin, out=pieces[1:, TO_ROW])
        np.cumsum(indptr[stop] - indptr[begin], out=pieces[1:, TO_ENTRY])
        lengths = np.diff(pieces[:, TO_ENTRY])
        entries = np.stack([pieces[:-1, ENTRY], pieces[:-1, TO_ENTRY], lengths], axis=1).tolist()
        target = self._memory[turn] = self._room(self._memory[turn], int(pieces[-1, TO_ROW]), int(pieces[-1, TO_ENTRY]))
        if layout != "dense":
            self._copies.copy(self._source.indices, target.indices, entries)
        if layout != "binary":
            self._copies.copy(self._source.values, target.values, entries)
        return target, pieces

    def _room(self, memory: DeviceRows | None, rows: int, entries: int) -> DeviceRows:
        """Return memory for these numbers of rows and entries: what there is, if it is large enough."""
        layout, weighted = self._rows.layout, self._source.weighted
        sizes = (
            rows + 1,
            0 if layout == "dense" else entries,
            0 if layout == "binary" else entries,
            rows,
            rows if weighted else 0,
        )
        there = (None,) * len(sizes) if memory is None else memory.arrays
        indptr, indices, values, labels, weights = (
            _at_least(array, size, like) for array, size, like in zip(there, sizes, self._source.arrays, strict=True)
        )
        return DeviceRows(indptr, indices, values, labels, weights, weighted)


def _at_least(array: Any, size: int, like: Any) -> Any:
    """Return an array of the GPU if it is large enough, or a new one."""
    if array is not None and len(array) >= size:
        return array
    return device_array(max(1, size + size // SPARE), like.dtype)
