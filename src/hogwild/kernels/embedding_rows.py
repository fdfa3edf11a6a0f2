"""Weighted sums of a table's rows, and updates of rows along a vector, in blocks of columns that fit into registers.

Both kernels have the same arguments. A sample has the non-zeros ``begin`` to ``stop``. ``indices`` holds the row of
each non-zero, and ``weights`` its weight. ``beside`` has one row for each sample: the sum, or the vector. Kernels
prefetch rows up to the non-zero ``end``.
"""

# mypy: disable-error-code="call-arg, unreachable, var-annotated"

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from hogwild.jit import always_inline
from hogwild.kernels.atomics import prefetch_near
from hogwild.kernels.simd import plus, put, take, zeros

# Number of non-zeros between the prefetch of a row and its use, about the latency of main memory.
AHEAD = 12
BITS = 4
LINE = 2**BITS  # Number of float32 numbers in a cache line.
WIDEST = 64  # Number of columns of a block, which fill half of the registers.

Part = Callable[..., Any]


@always_inline
def ask(table: Any, indices: Any, at: Any, end: Any, column: Any, lanes: Any) -> None:
    """Prefetch the columns that non-zero ``at`` needs of its row."""
    if at < end:
        row = np.int64(indices[at])
        for c in range(column, column + lanes, LINE):
            prefetch_near(table, row, c)
        # Rows do not begin at cache lines, so the columns may extend into one more line.
        if table.shape[1] & LINE - 1:
            start = row * table.shape[1] + column
            if (start + lanes - 1) >> BITS > (start + (lanes - 1 & -LINE)) >> BITS:
                prefetch_near(table, row, column + lanes - 1)


def summing(lanes: int, weight_of: Part) -> Part:
    """Return a function that computes a block of columns of a sample's weighted sum in registers."""

    @always_inline
    def sum_lanes(
        table: Any, indices: Any, weights: Any, beside: Any, sample: Any, column: Any, begin: Any, stop: Any, end: Any
    ) -> None:
        total = zeros(lanes)
        for at in range(begin, stop):
            ask(table, indices, at + AHEAD, end, column, lanes)
            total = plus(total, weight_of(weights, at), take(table, indices[at], column, lanes))
        put(beside, sample, column, total)

    return sum_lanes


def moving(lanes: int, weight_of: Part) -> Part:
    """Return a function that moves a block of columns of each of a sample's rows along the sample's vector.

    Registers hold the block of the vector.
    """

    @always_inline
    def move_lanes(
        table: Any, indices: Any, weights: Any, beside: Any, sample: Any, column: Any, begin: Any, stop: Any, end: Any
    ) -> None:
        along = take(beside, sample, column, lanes)
        for at in range(begin, stop):
            ask(table, indices, at + AHEAD, end, column, lanes)
            row = indices[at]
            put(table, row, column, plus(take(table, row, column, lanes), weight_of(weights, at), along))

    return move_lanes


@functools.cache
def by_columns(kind: Callable[[int, Part], Part], weight_of: Part, width: int) -> Part:
    """Return a function that applies a block kernel to all columns: 64 at a time, then the remaining columns."""
    some, rest = kind(WIDEST, weight_of), width % WIDEST
    last = kind(rest, weight_of) if rest else some

    @always_inline
    def all_columns(
        table: Any, indices: Any, weights: Any, beside: Any, sample: Any, begin: Any, stop: Any, end: Any
    ) -> None:
        for column in range(0, width - rest, WIDEST):
            some(table, indices, weights, beside, sample, column, begin, stop, end)
        if rest > 0:
            last(table, indices, weights, beside, sample, width - rest, begin, stop, end)

    return all_columns
