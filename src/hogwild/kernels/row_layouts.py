"""Access to a row by a pair of functions per layout of :class:`hogwild.data.csr.CSRRows`, and the score of a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.jit import Function, always_inline


def span(indptr: Any, i: Any) -> Any:
    """Return the first and the last position (exclusive) of the entries of row ``i``, unsigned.

    With signed positions, the kernel would check every index for a count from the end of the array. Such a check takes
    about as long as the multiplication that follows.
    """
    return np.uint64(indptr[i]), np.uint64(indptr[i + 1])


def stored_column(indices: Any, j: Any, start: Any) -> Any:
    """Return the column of entry ``j``, which ``indices`` stores."""
    return indices[j]


def counted_column(indices: Any, j: Any, start: Any) -> Any:
    """Return the column of entry ``j`` of a dense row that begins at ``start``."""
    return np.uint64(j - start)


def stored_value(values: Any, j: Any) -> Any:
    """Return the value of entry ``j`` in single precision."""
    return np.float32(values[j])


def precise_value(values: Any, j: Any) -> Any:
    """Return the value of entry ``j`` in the precision in which it is stored."""
    return values[j]


def one(values: Any, j: Any) -> Any:
    """Return 1, the value of every entry of binary data."""
    return np.float32(1)


LAYOUTS: dict[str, dict[str, Function]] = {
    "sparse": {"column": stored_column, "value": stored_value},
    "binary": {"column": stored_column, "value": one},
    "dense": {"column": counted_column, "value": stored_value},
}
PRECISE: dict[str, dict[str, Function]] = {
    "sparse": {"column": stored_column, "value": precise_value},
    "binary": {"column": stored_column, "value": one},
    "dense": {"column": counted_column, "value": precise_value},
}


# mypy: disable-error-code="name-defined"
# ruff: noqa: F821


def dot_in_order(state: Any, indices: Any, values: Any, start: Any, stop: Any) -> Any:
    """Return the score in double precision, summed from the first entry to the last."""
    z = 0.0
    for j in range(start, stop):
        z += float(state[column(indices, j, start), 0] * value(values, j))
    return z


def weight_in_table(state: Any, u: Any) -> Any:
    """Return the weight of column ``u`` from a table that has further numbers for each column."""
    return state[u, 0]


def weight_in_vector(state: Any, u: Any) -> Any:
    """Return the weight of column ``u`` from an array of weights alone."""
    return state[u]


@always_inline
def dot(state: Any, indices: Any, values: Any, start: Any, stop: Any) -> Any:
    """Return the score, computed as four independent partial sums.

    With a single sum, each addition would wait for the one before.
    """
    z0 = z1 = z2 = z3 = state.dtype.type(0)
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    j = start
    while j + four <= stop:
        z0 += weight(state, column(indices, j, start)) * value(values, j)
        z1 += weight(state, column(indices, j + one, start)) * value(values, j + one)
        z2 += weight(state, column(indices, j + two, start)) * value(values, j + two)
        z3 += weight(state, column(indices, j + three, start)) * value(values, j + three)
        j += four
    while j < stop:
        z0 += weight(state, column(indices, j, start)) * value(values, j)
        j += one
    return (z0 + z1) + (z2 + z3)


@always_inline
def dot_of(state: Any, first: Any, leap: Any, indices: Any, values: Any, start: Any, stop: Any) -> Any:
    """Return the score, in double precision, of an output whose weight of column u is ``state[first + u leap]``."""
    one, two = np.uint64(1), np.uint64(2)
    z0 = z1 = 0.0
    j = start
    while j + two <= stop:
        z0 += weight_of(state, first, leap, column(indices, j, start)) * float(value(values, j))
        z1 += weight_of(state, first, leap, column(indices, j + one, start)) * float(value(values, j + one))
        j += two
    if j < stop:
        z0 += weight_of(state, first, leap, column(indices, j, start)) * float(value(values, j))
    return z0 + z1


def weight_of(state: Any, first: Any, leap: Any, u: Any) -> Any:
    """Return the weight of column ``u``."""
    return float(state[first + np.uint64(u) * leap])
