"""Sums of rows of a table, and their update in place, for batches in compressed sparse row form.

The update is the whole backward pass of the table: each row that a sample has used moves by that sample's gradient at
once. There is no gradient of the table, nothing is sorted or summed up, and threads that share rows do not wait for
each other.
"""

# mypy: disable-error-code="name-defined, call-arg"
# ruff: noqa: F821  (a kernel's parts are bound when it is specialised)

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from hogwild.jit import always_inline, bind, compiled
from hogwild.kernels.atomics import prefetch
from hogwild.kernels.batch_queue import in_parts
from hogwild.kernels.embedding_rows import by_columns, moving, summing

FAR = 64  # non-zeros between asking for what a row remembers and using it: about a sample
SLOT_BITS = 10
SLOTS = 2**SLOT_BITS  # more than there will be threads
EPSILON = np.float32(1e-10)  # as torch.optim.Adagrad has it


@always_inline
def look_up(
    batch: Any, squares: Any, rate: Any, own: Any, steps: Any, marks: Any, first: Any, last: Any
) -> None:  # fmt: skip
    """Let each of the samples ``first`` to ``last`` have the weighted sum of its rows."""
    table, indices, offsets, values, sums = batch
    for sample in range(first, last):
        sum_rows(table, indices, values, sums, sample, offsets[sample], offsets[sample + 1], offsets[last])


@always_inline
def descend(
    batch: Any, squares: Any, rate: Any, own: Any, steps: Any, marks: Any, first: Any, last: Any
) -> None:  # fmt: skip
    """Move the rows of all samples against their gradient: those rows that are in the slots ``first`` to ``last``.

    A row is moved by one thread, so no update is lost, no two caches fight for a row that many samples have, and
    however many threads there are, the bits are the same.
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
    """One of the slots that rows are dealt out to, next to each other or not."""
    return np.int64((np.uint64(row) * np.uint64(2654435761) & np.uint64(0xFFFFFFFF)) >> np.uint64(32 - SLOT_BITS))


@always_inline
def one(values: Any, at: Any) -> Any:
    """Nothing is stored where every value is one; the compiler leaves out the product."""
    return np.float32(1)


@always_inline
def stored(values: Any, at: Any) -> Any:
    """The value of a non-zero."""
    return values[at]


@always_inline
def no_square(gradient: Any, sample: Any) -> Any:
    """For a step that does not depend on it."""
    return np.float32(0)


@always_inline
def mean_square(gradient: Any, sample: Any) -> Any:
    """The mean square of a sample's gradient."""
    total = np.float32(0)
    for column in range(gradient.shape[1]):
        total += gradient[sample, column] * gradient[sample, column]
    return total / np.float32(gradient.shape[1])


@always_inline
def sgd(squares: Any, row: Any, weight: Any, square: Any, rate: Any) -> Any:
    """The same step for all."""
    return rate * weight


@always_inline
def adagrad(squares: Any, row: Any, weight: Any, square: Any, rate: Any) -> Any:
    """A smaller step the more a row has moved: it remembers the sum of the mean squares of its gradients."""
    squares[row] += weight * weight * square
    return rate * weight / (np.sqrt(squares[row]) + EPSILON)


@always_inline
def nothing(squares: Any, row: Any) -> None:
    """For a step that remembers nothing."""


@always_inline
def memory(squares: Any, row: Any) -> None:
    """Ask for what a row remembers."""
    prefetch(squares, row)


UPDATES = {"sgd": (nothing, no_square, sgd), "adagrad": (memory, mean_square, adagrad)}


@functools.cache
def lookup_kernel(width: int, long: bool, binary: bool) -> Any:
    """The compiled :func:`look_up` in parts, for a table so wide and indices in 64 bits if ``long``, in 32 if not."""
    return in_parts(bind(look_up, sum_rows=by_columns(summing, one if binary else stored, width)), long)


@functools.cache
def descent_kernel(width: int, long: bool, binary: bool, update: str) -> Any:
    """The compiled :func:`descend` in parts."""
    ask, square, step = UPDATES[update]
    parts = {"weight_of": one if binary else stored, "ask_for": ask, "square_of": square, "step_of": step}
    return in_parts(bind(descend, **parts, move_rows=by_columns(moving, stored, width)), long)


@compiled
def first_fault(indices: Any, offsets: Any, rows: Any) -> Any:
    """Where the first index is that no row has, or -1; if offsets are wrong, -2 less the number of the wrong one.

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
    for at in range(len(indices)):  # without a way out, so that several are compared at once
        highest = max(highest, indices[at])
    if highest < rows:
        return -1
    for at in range(len(indices)):
        if indices[at] >= rows:
            return at
    return -1
