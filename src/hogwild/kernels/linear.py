"""Inner loops of linear models.

Each loop is a template: its global names stand for functions that :func:`hogwild.jit.specialise` binds.

The names are ``loss``, ``step``, ``step_intercept``, ``dot``, ``column``, ``value``, ``hold``, ``claim``, ``release``,
``flush``, ``penalty1``, ``penalty2``, ``skip``, ``pace``, ``ahead``, ``decayed``, ``slopes`` and ``numbers`` (per
coordinate).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.row_layouts import span
from hogwild.prefetch import prefetch, prefetch_to_write

# mypy: disable-error-code="name-defined, call-arg, unreachable"
# ruff: noqa: F821

# Number of terms between the prefetch of a term's parameters and their use.
AHEAD = 2
# Value of the weights' common factor below which the kernel multiplies it into the weights.
SMALLEST = np.float32(1e-6)
# Number of terms between two merges of a worker's own intercept into the shared one.
FLUSH_ROWS = 16
# Number of terms between two merges of a single worker. No worker has as many terms, so a single worker merges once, at
# the end.
ALL_ROWS = 2**62


def descend(
    indptr: Any, indices: Any, values: Any, labels: Any, weights: Any, order: Any, first: Any, stride: Any,
    rates: Any, state: Any, bias: Any, intercept: Any, shares: Any, l1: Any, l2: Any, class_weights: Any,
    parameter: Any, constants: Any, sync: Any, patience: Any, least: Any, stiffness: Any, bias_rate: Any, tilt: Any,
) -> float:  # fmt: skip
    """Descend along the terms ``order[first::stride]`` of a model with one output; return their summed loss.

    The intercept is in every term. So each worker steps its own copy, and merges its change into the shared intercept
    every ``patience`` terms. With one worker, this changes nothing. With many workers, they do not compete for one
    cache line. :func:`damping` chooses the share of a change that is merged, between ``least`` (1 / workers) and 1.

    The step size of the intercept is ``bias_rate`` times that of the weights, and ``tilt`` is added to its gradient.
    Where L2 is not distributed over the terms, all weights have a common factor. The kernel multiplies the factor into
    the weights before it returns, so callers never see it.
    """
    # This branch is never taken, but tells the compiler the number of columns. Without that number, each access to a
    # coordinate would need a multiplication.
    if state.shape[1] != numbers():
        return np.nan
    # Both are the common factor. Rounded to single precision after each term, it would drift, or not change at all.
    exact, scale = 1.0, np.float32(1)
    own = bias.copy()
    # A second read of ``bias`` could return another worker's newer value.
    seen = own.copy()
    guarded = np.intp(state.shape[0])
    k, leap, stop = np.uint64(first), np.uint64(stride), np.uint64(order.size)
    total, waiting, moved, pulled = 0.0, 0, np.float32(0), np.float32(0)
    while k < stop:
        i = order[k]
        start, end = span(indptr, i)
        ahead(indptr, indices, order, k + np.uint64(AHEAD) * leap, state, shares)
        hold(sync, indices, start, end)
        z = own[0, 0] + scale * dot(state, indices, values, start, end)
        cost, slope = loss(float(z), float(labels[i]), parameter)
        weight = class_weights[1 if labels[i] > 0 else 0] * (weights[i] if weights.size else np.float32(1))
        total += cost * weight
        g, rate = np.float32(slope * weight), np.float32(pace(rates[k], cost, values, start, end))
        claim(sync, k)
        if not skip(g):
            pull = g / scale
            for j in range(start, end):
                u = column(indices, j, start)
                p1, p2 = penalty1(shares, u, l1), penalty2(shares, u, l2)
                step(state, u, pull * value(values, j), rate, p1, p2, constants)
            if intercept:
                before = own[0, 0]
                step_intercept(own, 0, g + tilt, rate * bias_rate, np.float32(0), np.float32(0), constants)
                moved += abs(own[0, 0] - before)
                pulled += abs(g + tilt)
        waiting += 1
        if intercept and waiting >= patience:
            flush(sync, guarded, bias, own, seen, damping(moved, pulled, waiting, least, stiffness))
            waiting, moved, pulled = 0, np.float32(0), np.float32(0)
        exact = decayed(exact, rate, l2)
        if exact < SMALLEST:
            fold(state, exact)
            exact = 1.0
        scale = np.float32(exact)
        release(sync, indices, start, end, k)
        k += leap
    if intercept and waiting:
        flush(sync, guarded, bias, own, seen, damping(moved, pulled, waiting, least, stiffness))
    if exact != 1:
        fold(state, exact)
    return total


def descend_many(
    indptr: Any, indices: Any, values: Any, labels: Any, weights: Any, order: Any, first: Any, stride: Any,
    rates: Any, state: Any, bias: Any, intercept: Any, shares: Any, l1: Any, l2: Any, class_weights: Any,
    parameter: Any, constants: Any, sync: Any, patience: Any, least: Any, stiffness: Any, bias_rate: Any, tilt: Any,
) -> float:  # fmt: skip
    """Descend along the terms ``order[first::stride]`` of a model with one output per class; return their summed loss.

    One pass steps all K classes: coordinate ``u`` of class ``k`` is row ``u K + k``.
    """
    classes = bias.shape[0]
    own = bias.copy()
    seen = own.copy()
    scores, slope = np.empty(classes, np.float32), np.empty(classes, np.float64)
    guarded = np.intp(state.shape[0] // classes)
    at, leap, stop = np.uint64(first), np.uint64(stride), np.uint64(order.size)
    total, waiting, moved, pulled = 0.0, 0, np.float32(0), np.float32(0)
    while at < stop:
        i = order[at]
        start, end = span(indptr, i)
        hold(sync, indices, start, end)
        for k in range(classes):
            scores[k] = own[k, 0]
        for j in range(start, end):
            u, x = np.uint64(column(indices, j, start)) * np.uint64(classes), value(values, j)
            for k in range(classes):
                scores[k] += state[u + np.uint64(k), 0] * x
        weight = weights[i] if weights.size else np.float32(1)
        total += weight * slopes(scores, int(labels[i]), parameter, class_weights, slope)
        rate = rates[at]
        claim(sync, at)
        for j in range(start, end):
            u, x = np.uint64(column(indices, j, start)) * np.uint64(classes), value(values, j)
            p1, p2 = penalty1(shares, column(indices, j, start), l1), penalty2(shares, column(indices, j, start), l2)
            for k in range(classes):
                g = np.float32(slope[k] * weight)
                if not skip(g):
                    step(state, u + np.uint64(k), g * x, rate, p1, p2, constants)
        if intercept:
            for k in range(classes):
                g, before = np.float32(slope[k] * weight) + tilt, own[k, 0]
                step_intercept(own, k, g, rate * bias_rate, np.float32(0), np.float32(0), constants)
                moved += abs(own[k, 0] - before)
                pulled += abs(g)
        waiting += 1
        if intercept and waiting >= patience:
            flush(sync, guarded, bias, own, seen, damping(moved, pulled, waiting, least, stiffness))
            waiting, moved, pulled = 0, np.float32(0), np.float32(0)
        release(sync, indices, start, end, at)
        at += leap
    if intercept and waiting:
        flush(sync, guarded, bias, own, seen, damping(moved, pulled, waiting, least, stiffness))
    return total


def damping(moved: Any, pulled: Any, terms: Any, least: Any, stiffness: Any) -> Any:
    """Return the share of a worker's change of the intercept to merge, so that all workers' changes do not overshoot.

    Per unit of gradient, a step moved the intercept by ``moved / pulled``. Let ``terms`` be the terms since the last
    merge. The steps of all workers then close about ``workers * terms * stiffness * moved / pulled`` of the distance to
    the optimum. While this is less than 1, changes may be summed, and many workers are as fast as one. If this is more
    than 1, each worker reaches the optimum by itself, and the mean of their changes is right.
    """
    if least >= 1 or moved * stiffness * terms <= least * pulled:
        return np.float32(1)
    return max(least, least * pulled / (moved * stiffness * np.float32(terms)))


def flush(sync: Any, cell: Any, shared: Any, own: Any, seen: Any, share: Any) -> None:
    """Merge a worker's own intercept into the shared one, under a lock where the strategy has locks."""
    guard(sync, cell)
    merge(shared, own, seen, share)
    unguard(sync, cell)


def merge(shared: Any, own: Any, seen: Any, share: Any) -> None:
    """Add a share of this worker's change since its last merge to the shared intercept, and copy the result.

    If no other worker has changed the intercept, the worker's own value is the result. A sum would differ by rounding.
    """
    for k in range(shared.shape[0]):
        for s in range(shared.shape[1]):
            alone = share == 1 and shared[k, s] == seen[k, s]
            merged = own[k, s] if alone else shared[k, s] + share * (own[k, s] - seen[k, s])
            shared[k, s] = merged
            own[k, s] = merged
            seen[k, s] = merged


def look_ahead(indptr: Any, indices: Any, order: Any, k: Any, state: Any, shares: Any) -> None:
    """Prefetch the parameters of term ``k``."""
    if k < np.uint64(order.size):
        start, stop = span(indptr, order[k])
        for j in range(start, stop):
            u = column(indices, j, start)
            prefetch_to_write(state, u, 0)
            if shares.size:
                prefetch(shares, u)


def no_look_ahead(indptr: Any, indices: Any, order: Any, k: Any, state: Any, shares: Any) -> None:
    """Do nothing, as all parameters are in the cache."""


def no_decay(scale: Any, rate: Any, l2: Any) -> Any:
    """Return the common factor unchanged, as each term includes its share of any penalty."""
    return scale


def decay(scale: Any, rate: Any, l2: Any) -> Any:
    """Return the common factor after a step of L2, which applies to all weights, touched or not.

    In double precision.
    """
    return scale * (1.0 / (1.0 + float(rate) * float(l2)))


def fold(state: Any, scale: Any) -> None:
    """Multiply the common factor into the weights."""
    for u in range(state.shape[0]):
        state[u, 0] = np.float32(state[u, 0] * scale)


def shared_penalty(shares: Any, u: Any, strength: Any) -> Any:
    """Return a term's share of the penalty on coordinate ``u``: n / d_u of the strength.

    Here n is the number of terms, d_u of which have coordinate u. Over an epoch the shares add up to n penalties.
    """
    return strength * shares[u]


def write_shares(visits: Any, rows: Any, shares: Any) -> None:
    """Write the share of each coordinate's penalty in a term, for the number of terms that have the coordinate."""
    for u in range(shares.size):
        shares[u] = rows / visits[u] if visits[u] > 0 else rows


def sums_of(values: Any) -> Any:
    """Return the sums of the absolute values and of the squares of a column, in double precision."""
    sizes = squares = 0.0
    for u in range(values.shape[0]):
        for k in range(values.shape[1]):
            value = float(values[u, k])
            sizes += abs(value)
            squares += value * value
    return sizes, squares


def no_penalty(shares: Any, u: Any, strength: Any) -> Any:
    """Return 0, as there is no penalty."""
    return np.float32(0)


def when_zero(g: Any) -> bool:
    """Return whether the gradient is zero, for rules by which such a row moves nothing and can be skipped."""
    return bool(g == 0)


def never(g: Any) -> bool:
    """Return False, as a zero gradient still moves a velocity or a penalised weight."""
    return False


def decide(
    indptr: Any, indices: Any, values: Any, order: Any, scores: Any, state: Any, apart: Any, intercept: Any
) -> None:
    """Write the scores of the rows ``order``, with one line per row and one column per output.

    The weights are numbers of ``state``, ``apart`` from each other; between them is what the rule remembers.
    """
    outputs = intercept.size
    for at in range(order.size):
        start, stop = span(indptr, order[at])
        for k in range(outputs):
            first, leap = np.uint64(k * apart), np.uint64(outputs * apart)
            scores[at, k] = intercept[k] + dot_of(state, first, leap, indices, values, start, stop)
