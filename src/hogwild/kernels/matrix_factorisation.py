"""Inner loops of matrix completion, which step two rows of factors per term, or three where preferences are learnt.

One table has a row for every user, followed by a row for every item. A row has ``wide`` factors and the bias. Factors
beyond the rank are zero and stay zero. The next row begins ``room`` numbers later, in another cache line, so that
workers at different rows do not share a line.

The number of factors is not a compile-time constant. The compiler would unroll a loop that it knows to be short before
it could vectorise the loop.

Each loop is a template: ``numbers`` (per coordinate), ``step``, ``step_two``, ``hold``, ``claim``, ``release`` and
``loss`` stand for functions that :func:`hogwild.jit.specialise` binds.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from hogwild.jit import OPTIONS, UNCALLED, always_inline
from hogwild.kernels.row_layouts import span
from hogwild.kernels.simd import sgd_of_two

# mypy: disable-error-code="name-defined, call-arg, unreachable"
# ruff: noqa: F821

LINE = 16  # Number of float32 numbers in a cache line.
NOTHING = np.float32(0)


def descend(
    indptr: Any, indices: Any, values: Any, labels: Any, weights: Any, order: Any, first: Any, stride: Any,
    rates: Any, table: Any, wide: Any, room: Any, mean: Any, biased: Any, l2: Any, lowest: Any, constants: Any,
    sync: Any,
) -> float:  # fmt: skip
    """Descend along the ratings ``order[first::stride]``; return their summed loss."""
    # This branch is never taken, but tells the compiler the number of columns. Without that number, each access would
    # need a multiplication.
    if table.shape[1] != numbers():
        return np.nan
    k, leap, stop, total = np.uint64(first), np.uint64(stride), np.uint64(order.size), 0.0
    while k < stop:
        i = order[k]
        start, end = span(indptr, i)
        hold(sync, indices, start, end)
        a, b = row_of(indices, start, room), row_of(indices, start + np.uint64(1), room)
        z = mean + (dot(table, a, b, wide) + (table[a + wide, 0] + table[b + wide, 0]))
        cost, slope = loss(float(z), float(labels[i]), 0.0)
        weight = weights[i] if weights.size else np.float32(1)
        total += cost * weight
        g, pull, rate = np.float32(slope * weight), l2 * weight, np.float32(rates[k])
        claim(sync, k)
        step_two(table, a, b, wide, g, pull, rate, lowest, constants)
        if biased:
            step(table, a + wide, g + pull * table[a + wide, 0], rate, NOTHING, NOTHING, constants)
            step(table, b + wide, g + pull * table[b + wide, 0], rate, NOTHING, NOTHING, constants)
        release(sync, indices, start, end, k)
        k += leap
    return total


@always_inline
def row_of(indices: Any, j: Any, room: Any) -> Any:
    """Return the position in the table at which the row of entry ``j`` begins."""
    return np.uint64(indices[j]) * room


# The compiler may reorder this sum, and so keep many partial sums in one register. The order is the same for every
# call.
@numba.njit(**{**OPTIONS, "fastmath": {"contract", "reassoc"}}, **UNCALLED, forceinline=True)
def dot(table: Any, a: Any, b: Any, wide: Any) -> Any:
    """Return the dot product of two rows of factors."""
    total = np.float32(0)
    for f in range(wide):
        total += table[a + f, 0] * table[b + f, 0]
    return total


def sgd_two(table: Any, a: Any, b: Any, wide: Any, g: Any, pull: Any, rate: Any, lowest: Any, constants: Any) -> None:
    """Step two rows of factors, with the rule SGD."""
    sgd_of_two(table, a, b, wide, g, pull, rate, lowest)


def any_two(table: Any, a: Any, b: Any, wide: Any, g: Any, pull: Any, rate: Any, lowest: Any, constants: Any) -> None:
    """Step two rows of factors, with any rule."""
    for f in range(wide):
        p, q = table[a + f, 0], table[b + f, 0]
        step(table, a + f, g * q + pull * p, rate, NOTHING, NOTHING, constants)
        step(table, b + f, g * p + pull * q, rate, NOTHING, NOTHING, constants)
        table[a + f, 0] = max(table[a + f, 0], lowest)
        table[b + f, 0] = max(table[b + f, 0], lowest)


def evaluate(
    indptr: Any, indices: Any, values: Any, labels: Any, weights: Any, order: Any, table: Any, wide: Any, room: Any,
    mean: Any, low: Any, high: Any, sums: Any,
) -> None:  # fmt: skip
    """Write to ``sums`` the loss, the weight and the squared error of the ratings ``order``.

    The squared error is that of predictions clipped to ``low`` and ``high``.
    """
    lost = weighed = squared = 0.0
    for at in range(order.size):
        i = order[at]
        start = np.uint64(indptr[i])
        a, b = row_of(indices, start, room), row_of(indices, start + np.uint64(1), room)
        z = mean + (dot(table, a, b, wide) + (table[a + wide, 0] + table[b + wide, 0]))
        y, weight = float(labels[i]), float(weights[i]) if weights.size else 1.0
        lost += weight * loss(float(z), y, 0.0)[0]
        weighed += weight
        squared += weight * (min(max(float(z), low), high) - y) ** 2
    sums[0], sums[1], sums[2] = lost, weighed, squared
