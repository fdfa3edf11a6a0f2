"""Sums of rows of a table, and their update in place, for batches in compressed sparse row form.

The update is the whole backward pass of the table: each row that a sample has used moves by that sample's gradient at
once. There is no gradient of the table, nothing is sorted or summed up, and threads that share rows do not wait for
each other.
"""

# mypy: disable-error-code="name-defined, call-arg"
# ruff: noqa: F821  (a kernel's parts are bound when it is specialised)

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.compiled import compiled, inlined, specialise
from hogwild.kernels.atomics import prefetch_to_write

AHEAD = 16  # non-zeros between asking for a row and using it: about as long as memory takes to answer
LINE = 16  # numbers in a cache line
EPSILON = np.float32(1e-10)  # as torch.optim.Adagrad has it


def look_up(table: Any, indices: Any, offsets: Any, values: Any, out: Any, first: Any, last: Any) -> None:
    """Let each of the samples ``first`` to ``last`` have the weighted sum of its rows."""
    width = table.shape[1]
    end = offsets[last]
    for sample in range(first, last):
        for column in range(width):
            out[sample, column] = 0
        for at in range(offsets[sample], offsets[sample + 1]):
            if at + AHEAD < end:
                for column in range(0, width, LINE):
                    prefetch_to_write(table, indices[at + AHEAD], column)  # they are written in the backward pass
            row, weight = indices[at], weight_of(values, at)
            for column in range(width):
                out[sample, column] += weight * table[row, column]


def descend(
    table: Any, squares: Any, indices: Any, offsets: Any, values: Any, gradient: Any, rate: Any, first: Any, last: Any
) -> None:
    """Move every row of the samples ``first`` to ``last`` against its gradient."""
    width = table.shape[1]
    end = offsets[last]
    for sample in range(first, last):
        square = square_of(gradient, sample)
        for at in range(offsets[sample], offsets[sample + 1]):
            if at + AHEAD < end:
                for column in range(0, width, LINE):
                    prefetch_to_write(table, indices[at + AHEAD], column)
            row = indices[at]
            step = step_of(squares, row, weight_of(values, at), square, rate)
            for column in range(width):
                table[row, column] -= step * gradient[sample, column]


@inlined
def one(values: Any, at: Any) -> Any:
    """Nothing is stored where every value is one; the compiler leaves out the product."""
    return np.float32(1)


@inlined
def stored(values: Any, at: Any) -> Any:
    """The value of a non-zero."""
    return values[at]


@inlined
def no_square(gradient: Any, sample: Any) -> Any:
    """For a step that does not depend on it."""
    return np.float32(0)


@inlined
def mean_square(gradient: Any, sample: Any) -> Any:
    """The mean square of a sample's gradient."""
    total = np.float32(0)
    for column in range(gradient.shape[1]):
        total += gradient[sample, column] * gradient[sample, column]
    return total / np.float32(gradient.shape[1])


@inlined
def sgd(squares: Any, row: Any, weight: Any, square: Any, rate: Any) -> Any:
    """The same step for all."""
    return rate * weight


@inlined
def adagrad(squares: Any, row: Any, weight: Any, square: Any, rate: Any) -> Any:
    """A smaller step the more a row has moved: it remembers the sum of the mean squares of its gradients."""
    squares[row] += weight * weight * square
    return rate * weight / (np.sqrt(squares[row]) + EPSILON)


UPDATES = {"sgd": (no_square, sgd), "adagrad": (mean_square, adagrad)}


def lookup_kernel(binary: bool) -> Any:
    """The compiled :func:`look_up`.

    >>> table, out = np.eye(3, dtype=np.float32), np.empty((1, 3), np.float32)
    >>> lookup_kernel(True)(table, np.array([0, 2], np.uint64), np.array([0, 2]), table[0], out, 0, 1)
    >>> out
    array([[1., 0., 1.]], dtype=float32)
    """
    return specialise(look_up, weight_of=one if binary else stored)


def descent_kernel(binary: bool, update: str) -> Any:
    """The compiled :func:`descend`.

    >>> table, slope = np.zeros((3, 2), np.float32), np.ones((1, 2), np.float32)
    >>> at = np.array([0, 2], np.uint64), np.array([0, 2])
    >>> descent_kernel(True, "sgd")(table, table[0], *at, table[0], slope, np.float32(0.5), 0, 1)
    >>> table[:, 0]
    array([-0.5,  0. , -0.5], dtype=float32)
    """
    square, step = UPDATES[update]
    return specialise(descend, weight_of=one if binary else stored, square_of=square, step_of=step)


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
    for at in range(len(indices)):
        if indices[at] >= rows:
            return at
    return -1
