"""Products of feature pairs, with a row of factors per feature and field of the other feature (FFM, Juan et al. 2016).

Row ``(u, field)`` of the factors is at ``(u n + field) rank``, where n is the number of fields. ``fields`` holds the
field of each feature; its last entry is n.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.jit import always_inline
from hogwild.kernels.row_layouts import span
from hogwild.kernels.simd import adagrad_of_fours, dot_of_fours
from hogwild.prefetch import prefetch_to_write

# mypy: disable-error-code="name-defined, call-arg, unreachable"
# ruff: noqa: F821

FOUR = np.uint64(4)


def ranks(sums: Any) -> Any:
    """Return the number of factors of a row, in a form that tells the compiler that it is a multiple of four."""
    return np.uint64(sums.shape[1]) // FOUR * FOUR


def row_of(fields: Any, rank: Any, u: Any, other: Any) -> Any:
    """Return the position of the factors of feature ``u`` that are multiplied with factors of feature ``other``."""
    return (np.uint64(u) * np.uint64(fields[fields.size - 1]) + np.uint64(fields[other])) * rank


@always_inline
def score(
    state: Any, factors: Any, fields: Any, indices: Any, values: Any, start: Any, end: Any, scale: Any, sums: Any
) -> Any:
    """Return the weighted sum of the features and of their products."""
    rank = ranks(sums)
    z = np.float32(0)
    for i in range(start, end):
        u, x = np.uint64(column(indices, i, start)), value(values, i) * scale
        z += state[u, 0] * x
        for j in range(i + np.uint64(1), end):
            v, product = np.uint64(column(indices, j, start)), x * value(values, j) * scale
            one, other = row_of(fields, rank, u, v), row_of(fields, rank, v, u)
            for f in range(np.uint64(0), rank, FOUR):
                z += dot_of_fours(factors, one + f, other + f) * product
    return z


@always_inline
def move(
    factors: Any, fields: Any, indices: Any, values: Any, start: Any, end: Any, scale: Any, sums: Any, g: Any,
    rate: Any, decay: Any, constants: Any,
) -> None:  # fmt: skip
    """Step the factors of a term whose score has the derivative ``g``, pair by pair as in libffm."""
    rank = ranks(sums)
    for i in range(start, end):
        u, pull = np.uint64(column(indices, i, start)), g * value(values, i) * scale
        for j in range(i + np.uint64(1), end):
            v, slope = np.uint64(column(indices, j, start)), pull * value(values, j) * scale
            one, other = row_of(fields, rank, u, v), row_of(fields, rank, v, u)
            for f in range(np.uint64(0), rank, FOUR):
                step_fours(factors, one + f, other + f, slope, rate, decay, constants)


def any_fours(factors: Any, one: Any, other: Any, slope: Any, rate: Any, decay: Any, constants: Any) -> None:
    """Step four factors of a feature and the four factors of the other feature, with any rule."""
    for f in range(FOUR):
        mine, theirs = factors[one + f, 0], factors[other + f, 0]  # Both values are read before either is stepped.
        step(factors, one + f, slope * theirs, rate, np.float32(0), decay, constants)
        step(factors, other + f, slope * mine, rate, np.float32(0), decay, constants)


def adagrad_fours(factors: Any, one: Any, other: Any, slope: Any, rate: Any, decay: Any, constants: Any) -> None:
    """Step four factors of a feature and the four factors of the other feature, with the rule AdaGrad."""
    adagrad_of_fours(factors, one, other, slope, rate, decay)


def look_ahead(indptr: Any, indices: Any, order: Any, k: Any, state: Any, factors: Any, fields: Any, rank: Any) -> None:
    """Prefetch the parameters of term ``k``."""
    if k < np.uint64(order.size):
        start, stop = span(indptr, order[k])
        for i in range(start, stop):
            u = np.uint64(column(indices, i, start))
            prefetch_to_write(state, u, 0)
            for j in range(start, stop):
                if i != j:
                    row = row_of(fields, np.uint64(rank), u, np.uint64(column(indices, j, start)))
                    for part in range(factors.shape[1]):
                        prefetch_to_write(factors, row, part)


def count_pairs(indptr: Any, indices: Any, order: Any, visits: Any, fields: Any, counts: Any) -> None:
    """Count how many pairs of features use each row of factors; a row of data counts as often as it is visited."""
    for at in range(order.size):
        start, end = span(indptr, order[at])
        for i in range(start, end):
            for j in range(start, end):
                if i != j:
                    u, v = np.uint64(column(indices, i, start)), np.uint64(column(indices, j, start))
                    counts[row_of(fields, np.uint64(1), u, v)] += visits[at]
