"""Weighted sums of rows of a table, and rows that are moved along one: as many columns at a time as registers hold.

Both have one shape: a sample has the non-zeros ``begin`` to ``stop``, ``indices`` tells which row each is, ``weights``
how much of it, and ``beside`` has a row for each sample. Rows are asked for ahead, up to the non-zero ``end``.
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

AHEAD = 12  # non-zeros between asking for a row and using it: about as long as memory takes to answer
BITS = 4
LINE = 2**BITS  # numbers in a cache line
WIDEST = 64  # columns: half of the registers there are

Part = Callable[..., Any]


@always_inline
def ask(table: Any, indices: Any, at: Any, end: Any, column: Any, lanes: Any) -> None:
    """Let memory send what a later non-zero needs of its row."""
    if at < end:
        row = np.int64(indices[at])
        for c in range(column, column + lanes, LINE):
            prefetch_near(table, row, c)
        if table.shape[1] & LINE - 1:  # rows do not begin where lines do, and may end in one more
            start = row * table.shape[1] + column
            if (start + lanes - 1) >> BITS > (start + (lanes - 1 & -LINE)) >> BITS:
                prefetch_near(table, row, column + lanes - 1)


def summing(lanes: int, weight_of: Part) -> Part:
    """Some columns of a sample's weighted sum, held in registers until it is complete."""

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
    """Some columns of a sample's rows, each moved along what the sample has beside it, which registers hold."""

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
    """What is done to some columns, done to all of a sample's: 64 at a time, and the rest as they are."""
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
