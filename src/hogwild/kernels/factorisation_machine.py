"""Inner loops of models whose score has products of features: weights, an intercept, and rows of factors.

The loops are templates, as in :mod:`hogwild.kernels.linear`. The part ``score`` computes the score of a term, and
writes to ``sums`` the numbers that the part ``move`` needs to step the factors. Both parts are in
:mod:`hogwild.kernels.fm_interactions` and :mod:`hogwild.kernels.ffm_interactions`. The table of factors stores numbers
of one kind side by side, so that vector instructions step several factors at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.linear import AHEAD, damping
from hogwild.kernels.row_layouts import span

# mypy: disable-error-code="name-defined, unreachable"
# ruff: noqa: F821


def descend(
    indptr: Any, indices: Any, values: Any, labels: Any, weights: Any, order: Any, first: Any, stride: Any,
    rates: Any, state: Any, bias: Any, factors: Any, fields: Any, rank: Any, intercept: Any, shares: Any, l2: Any,
    l2_factors: Any, class_weights: Any, parameter: Any, constants: Any, sync: Any, patience: Any, least: Any,
    stiffness: Any,
) -> float:  # fmt: skip
    """Descend along the terms ``order[first::stride]``; return their summed loss.

    As in a linear model, each worker steps a copy of the intercept and merges the copy every ``patience`` terms.
    """
    # This branch is never taken, but tells the compiler the number of columns.
    if state.shape[1] != numbers() or factors.shape[1] != numbers():
        return np.nan
    own = bias.copy()
    # A second read of ``bias`` could return another worker's newer value.
    seen = own.copy()
    sums = np.empty((2, rank), np.float32)
    guarded = np.intp(state.shape[0])
    k, leap, stop = np.uint64(first), np.uint64(stride), np.uint64(order.size)
    total, waiting, moved, pulled = 0.0, 0, np.float32(0), np.float32(0)
    while k < stop:
        i = order[k]
        start, end = span(indptr, i)
        ahead(indptr, indices, order, k + np.uint64(AHEAD) * leap, state, factors, fields, rank)
        hold(sync, indices, start, end)
        scale = length(values, start, end)
        z = own[0, 0] + score(state, factors, fields, indices, values, start, end, scale, sums)
        cost, slope = loss(float(z), float(labels[i]), parameter)
        weight = class_weights[1 if labels[i] > 0 else 0] * (weights[i] if weights.size else np.float32(1))
        total += cost * weight
        g, rate = np.float32(slope * weight), np.float32(rates[k])
        claim(sync, k)
        if not skip(g):
            for j in range(start, end):
                u = column(indices, j, start)
                p2 = penalty(shares, u, l2)
                step(state, u, g * value(values, j) * scale, rate, np.float32(0), p2, constants)
            decay = factor_penalty(shares, 0, l2_factors)
            move(factors, fields, indices, values, start, end, scale, sums, g, rate, decay, constants)
            if intercept:
                before = own[0, 0]
                step(own, 0, g, rate, np.float32(0), np.float32(0), constants)
                moved += abs(own[0, 0] - before)
                pulled += abs(g)
        waiting += 1
        if intercept and waiting >= patience:
            flush(sync, guarded, bias, own, seen, damping(moved, pulled, waiting, least, stiffness))
            waiting, moved, pulled = 0, np.float32(0), np.float32(0)
        release(sync, indices, start, end, k)
        k += leap
    if intercept and waiting:
        flush(sync, guarded, bias, own, seen, damping(moved, pulled, waiting, least, stiffness))
    return total


def decide(
    indptr: Any, indices: Any, values: Any, order: Any, scores: Any, state: Any, intercept: Any, factors: Any,
    fields: Any, rank: Any,
) -> None:  # fmt: skip
    """Write the scores of the rows ``order``; the factors are values alone, without the rule's state."""
    # This branch is never taken, but tells the compiler that the factors lie side by side.
    if factors.shape[1] != 1:
        return
    # The sum over pairs is a difference: in single precision the score of a row would depend on the order of its sums.
    sums = np.empty((2, rank), np.float64)
    for at in range(order.size):
        start, end = span(indptr, order[at])
        scale = length(values, start, end)
        scores[at, 0] = intercept[0] + score(state, factors, fields, indices, values, start, end, scale, sums)


def as_it_is(values: Any, start: Any, end: Any) -> Any:
    """Return 1, for rows that are not normalised."""
    return np.float32(1)


def to_length_one(values: Any, start: Any, end: Any) -> Any:
    """Return the factor by which the values of a row are multiplied, so that the sum of their squares is 1."""
    squares = np.float32(0)
    for j in range(start, end):
        squares += value(values, j) * value(values, j)
    return np.float32(1) / np.sqrt(squares) if squares > 0 else np.float32(1)


def constant_penalty(shares: Any, u: Any, strength: Any) -> Any:
    """Return the whole penalty for each term, so that a coordinate's penalty is weighted by its number of terms."""
    return strength


def no_look_ahead(
    indptr: Any, indices: Any, order: Any, k: Any, state: Any, factors: Any, fields: Any, rank: Any
) -> None:
    """Do nothing, as all parameters are in the cache."""
