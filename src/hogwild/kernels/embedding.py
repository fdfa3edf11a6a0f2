"""Sums of a table's rows and their update in place, for batches in compressed sparse row (CSR) form.

Both kernels have the same arguments. A sample has the non-zeros ``begin`` to ``stop``. ``indices`` holds the row of
each non-zero, and ``weights`` its weight. ``beside`` has one row for each sample: the sum, or the vector. Kernels
prefetch rows up to the non-zero ``end``.

The update is the whole backward pass of the table. The backward pass moves each row that a sample has used by that
sample's gradient at once. There is no gradient of the table, no sort and no sum over samples. Threads that share rows
do not wait for each other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from hogwild.jit import always_inline, bind, compiled
from hogwild.kernels.simd import plus, put, take, zeros
from hogwild.kernels.work_queue import in_parts
from hogwild.prefetch import prefetch, prefetch_near

# mypy: disable-error-code="call-arg, unreachable, var-annotated, name-defined"


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


# ruff: noqa: F821  (a kernel's parts are bound when it is specialised)


# Number of non-zeros, about one sample, between the prefetch of a row's accumulator and its use.
FAR = 64
SLOT_BITS = 10
# Number of slots over which rows are hashed, which exceeds the number of threads.
SLOTS = 2**SLOT_BITS
# The value of ``torch.optim.Adagrad``, added to the root so that it is not zero.
EPSILON = np.float32(1e-10)


@always_inline
def look_up(
    batch: Any, squares: Any, rate: Any, own: Any, steps: Any, marks: Any, first: Any, last: Any
) -> None:  # fmt: skip
    """Write the weighted sum of its rows for each of the samples ``first`` to ``last``."""
    table, indices, offsets, values, sums = batch
    for sample in range(first, last):
        sum_rows(table, indices, values, sums, sample, offsets[sample], offsets[sample + 1], offsets[last])


@always_inline
def descend(
    batch: Any, squares: Any, rate: Any, own: Any, steps: Any, marks: Any, first: Any, last: Any
) -> None:  # fmt: skip
    """Move the rows of all samples against their gradient, but only rows whose slot is in ``first`` to ``last``.

    Only one thread moves a given row. So no update is lost, and no two caches compete for a row that many samples
    share. The result has the same bits for any number of threads.
    """
    table, indices, offsets, values, gradient = batch
    count = 0
    for sample in range(len(marks) - 1):
        marks[sample] = count
        for at in range(offsets[sample], offsets[sample + 1]):
            own[count], steps[count] = indices[at], weight_of(values, at)
            slot = slot_of(indices[at])
            count += (first <= slot) & (slot < last)
    marks[len(marks) - 1] = count
    for sample in range(len(marks) - 1):
        begin, stop = marks[sample], marks[sample + 1]
        square = square_of(gradient, sample)
        for at in range(begin, stop):
            if at + FAR < count:
                ask_for(squares, own[at + FAR])
            steps[at] = -step_of(squares, own[at], steps[at], square, rate)
        move_rows(table, own, steps, gradient, sample, begin, stop, count)


@always_inline
def slot_of(row: Any) -> Any:
    """Return the slot of a row, a hash by which rows are distributed to threads whether they are neighbours or not."""
    return np.int64((np.uint64(row) * np.uint64(2654435761) & np.uint64(0xFFFFFFFF)) >> np.uint64(32 - SLOT_BITS))


@always_inline
def one(values: Any, at: Any) -> Any:
    """Return 1, the value of every non-zero of binary data.

    No values are stored, and the compiler omits the product.
    """
    return np.float32(1)


@always_inline
def stored(values: Any, at: Any) -> Any:
    """Return the stored value of a non-zero."""
    return values[at]


@always_inline
def no_square(gradient: Any, sample: Any) -> Any:
    """Return 0, for an update whose step size does not depend on the gradient."""
    return np.float32(0)


@always_inline
def mean_square(gradient: Any, sample: Any) -> Any:
    """Return the mean square of a sample's gradient."""
    total = np.float32(0)
    for column in range(gradient.shape[1]):
        total += gradient[sample, column] * gradient[sample, column]
    return total / np.float32(gradient.shape[1])


@always_inline
def sgd(squares: Any, row: Any, weight: Any, square: Any, rate: Any) -> Any:
    """Return the step size of SGD, which is the same for all rows."""
    return rate * weight


@always_inline
def adagrad(squares: Any, row: Any, weight: Any, square: Any, rate: Any) -> Any:
    """Return the step size of AdaGrad, and add to the row's accumulator the weighted mean square of its gradient.

    The accumulator has one number per row, so all columns of a row have one step size.
    """
    squares[row] += weight * weight * square
    return rate * weight / (np.sqrt(squares[row]) + EPSILON)


@always_inline
def nothing(squares: Any, row: Any) -> None:
    """Do nothing, for an update without accumulators."""


@always_inline
def memory(squares: Any, row: Any) -> None:
    """Prefetch a row's accumulator."""
    prefetch(squares, row)


UPDATES = {"sgd": (nothing, no_square, sgd), "adagrad": (memory, mean_square, adagrad)}


@functools.cache
def lookup_kernel(width: int, long: bool, binary: bool) -> Any:
    """Return the compiled :func:`look_up` for a table of ``width`` columns, callable by parts.

    Indices have 64 bits if ``long``, else 32.
    """
    return in_parts(bind(look_up, sum_rows=by_columns(summing, one if binary else stored, width)), long)


@functools.cache
def descent_kernel(width: int, long: bool, binary: bool, update: str) -> Any:
    """Return the compiled :func:`descend` for a table of ``width`` columns, callable by parts."""
    ask, square, step = UPDATES[update]
    parts = {"weight_of": one if binary else stored, "ask_for": ask, "square_of": square, "step_of": step}
    return in_parts(bind(descend, **parts, move_rows=by_columns(moving, stored, width)), long)


@compiled
def first_fault(indices: Any, offsets: Any, rows: Any) -> Any:
    """Return the position of the first index that no row has, or -1 if there is none.

    If offset k is wrong, return -2 - k.

    >>> first_fault(np.array([0, 5], np.uint64), np.array([0, 2]), 3), first_fault(np.zeros(2, np.uint64),
    ...     np.array([0, 2, 1, 2]), 3)
    (1, -4)
    """
    if offsets[0] != 0:
        return -2
    for number in range(1, len(offsets)):
        if offsets[number] < offsets[number - 1]:
            return -2 - number
    if offsets[len(offsets) - 1] != len(indices):
        return -1 - len(offsets)
    highest = indices.dtype.type(0)
    # This loop has no early exit, so that the compiler compares several indices at once.
    for at in range(len(indices)):
        highest = max(highest, indices[at])
    if highest < rows:
        return -1
    for at in range(len(indices)):
        if indices[at] >= rows:
            return at
    return -1
