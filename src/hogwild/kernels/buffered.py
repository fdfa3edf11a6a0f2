"""The inner loop of a worker that keeps the coordinates it touches most in a copy of its own.

Cache lines that all workers write travel from core to core with every write, and cost more than the arithmetic. Here a
worker steps its own copy of the frequent ("hot") coordinates, ranked by frequency, and merges it with the shared one
now and then: the most frequent often, the rarer the more seldom. Rare coordinates are read and written as ever.

A template like those in :mod:`hogwild.kernels.linear`; besides their names it has ``private`` (whether a coordinate is
in the worker's copy) and ``own_rate`` (how far a unit of gradient moves a coordinate).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.atomics import prefetch, prefetch_to_write
from hogwild.kernels.linear import AHEAD, damping, merge

# mypy: disable-error-code="name-defined, call-arg, unreachable, assignment"
# ruff: noqa: F821

# What a worker keeps count of: rows since the last merge, merges, rows before it, and rows to go between two merges,
# which grow from the shortest to the longest.
WAITING, EVENT, SEEN, PERIOD, SHORTEST, LONGEST = range(6)
LINE = 16  # numbers in a cache line
SAMPLED = 8  # of so many rows of a copy, one tells how large their steps are
CALM = 2.0  # of the way to the optimum that all workers' steps between two merges may go together


def descend_buffered(
    indptr: Any, indices: Any, values: Any, labels: Any, weights: Any, order: Any, rates: Any, state: Any, bias: Any,
    hot: Any, own: Any, seen: Any, lookup: Any, scratch: Any, control: Any, tiers: Any, stiff: Any, intercept: Any,
    shares: Any, l1: Any, l2: Any, class_weights: Any, parameter: Any, constants: Any, least: Any,
    stiffness: Any, bias_rate: Any, tilt: Any,
) -> float:  # fmt: skip
    """Descend along the terms ``order`` of a model with one output; return their summed loss.

    ``own`` is this worker's copy of ``hot``, and ``seen`` what it was when they last met. ``lookup[u]`` is the rank of
    coordinate u, which is its row in them if it is less than their length, and its share of the penalty.
    """
    mine, then = bias.copy(), bias.copy()
    places, rows, xs, parts = tables(own, values, shares, scratch)
    apart = control[WAITING]
    total, waiting, moved, pulled = 0.0, 0, np.float32(0), np.float32(0)
    for k in range(order.size):
        i = order[k]
        ahead(indptr, indices, order, k, state, lookup, own.shape[0])
        start, size = np.uint64(indptr[i]), np.uint64(indptr[i + 1] - indptr[i])
        first, front = (
            base(start),
            gather(indices, values, start, size, lookup, shares, own, state, places, rows, xs, parts),
        )
        z0 = z1 = z2 = z3 = np.float32(0)
        j = np.uint64(0)
        while j + np.uint64(4) <= size:  # four sums in flight
            z0 += rows[j, 0] * np.float32(xs[first + j])
            z1 += rows[j + np.uint64(1), 0] * np.float32(xs[first + j + np.uint64(1)])
            z2 += rows[j + np.uint64(2), 0] * np.float32(xs[first + j + np.uint64(2)])
            z3 += rows[j + np.uint64(3), 0] * np.float32(xs[first + j + np.uint64(3)])
            j += np.uint64(4)
        while j < size:
            z0 += rows[j, 0] * np.float32(xs[first + j])
            j += np.uint64(1)
        cost, slope = loss(float(mine[0, 0] + (z0 + z1) + (z2 + z3)), float(labels[i]), parameter)
        weight = class_weights[1 if labels[i] > 0 else 0] * (weights[i] if weights.size else np.float32(1))
        total += cost * weight
        g, rate = np.float32(slope * weight), rates[k]
        if not skip(g):
            for j in range(size):
                p1, p2 = penalty1(parts, j, l1), penalty2(parts, j, l2)
                step(rows, j, g * np.float32(xs[first + j]), rate, p1, p2, constants)
            scatter(front, size, own, state, places, rows)
            if intercept:
                before = mine[0, 0]
                step(mine, 0, g + tilt, rate * bias_rate, np.float32(0), np.float32(0), constants)
                moved += abs(mine[0, 0] - before)
                pulled += abs(g + tilt)
        waiting += 1
        apart += 1
        if apart >= control[PERIOD]:
            meet(hot, own, seen, control, tiers, stiff, rate, least, constants)
            apart = 0
            if intercept:
                merge(bias, mine, then, damping(moved, pulled, waiting, least, stiffness))
                waiting, moved, pulled = 0, np.float32(0), np.float32(0)
    control[WAITING] = apart
    if intercept and waiting:
        merge(bias, mine, then, damping(moved, pulled, waiting, least, stiffness))
    return total


def gather(
    indices: Any, values: Any, start: Any, size: Any, lookup: Any, shares: Any, own: Any, state: Any,
    places: Any, rows: Any, xs: Any, parts: Any,
) -> Any:  # fmt: skip
    """Copy all that a term touches, so that its steps can be taken several at once.

    What is hot is put from the front, all else from the back, without a branch that nobody could foresee. Says how many
    are hot; arrays are neither handed back nor taken from a tuple, which would count references for every term.
    """
    hots, front, back = own.shape[0], np.uint64(0), size
    for j in range(size):
        u = column(indices, start + j, start)
        p = rank(lookup, u)
        is_hot = private(p, hots)
        back -= np.uint64(0 if is_hot else 1)
        at = front if is_hot else back
        front += np.uint64(1 if is_hot else 0)
        places[at] = p if is_hot else u
        xs[at] = value(values, start + j)
        parts[at] = part(lookup, shares, u, p)
    for j in range(front):
        copy(rows, j, own, places[j])
    for j in range(front, size):
        copy(rows, j, state, places[j])
    return front


def copies(own: Any, values: Any, shares: Any, scratch: Any) -> Any:
    """The ranks of a term's coordinates, the coordinates, its values and its parts of the penalty."""
    places, xs, parts, rows = scratch
    return places, rows, xs, parts


def from_zero(start: Any) -> Any:
    """Where a term begins in the values."""
    return np.uint64(0)


def scatter(front: Any, size: Any, own: Any, state: Any, places: Any, rows: Any) -> None:
    """Put the copies back."""
    for j in range(front):
        copy(own, places[j], rows, j)
    for j in range(front, size):
        copy(state, places[j], rows, j)


def no_gather(
    indices: Any, values: Any, start: Any, size: Any, lookup: Any, shares: Any, own: Any, state: Any,
    places: Any, rows: Any, xs: Any, parts: Any,
) -> Any:  # fmt: skip
    """A dense row touches everything, in order: there is nothing to copy."""
    return size


def themselves(own: Any, values: Any, shares: Any, scratch: Any) -> Any:
    """The same of a dense row."""
    return scratch[0], own, values, shares


def from_start(start: Any) -> Any:
    """Where a dense row begins in the values."""
    return start


def no_scatter(front: Any, size: Any, own: Any, state: Any, places: Any, rows: Any) -> None:
    """Nothing was copied."""


def meet(
    hot: Any, own: Any, seen: Any, control: Any, tiers: Any, stiff: Any, rate: Any, least: Any, constants: Any
) -> None:
    """Merge the first tier, and a part of each other one: each has twice the rows of the one before it.

    So every merge costs about the same, and a tier that is half as frequent waits twice as long.
    """
    control[SEEN] += control[PERIOD]
    control[EVENT] += 1
    control[PERIOD] = max(control[SHORTEST], min(control[LONGEST], control[SEEN] // 4))
    for k in range(tiers.size - 1):  # before the first is touched: so they all travel at the same time
        low, high = due(k, control, tiers)
        for p in range(low, high, max(1, LINE // hot.shape[1])):
            for s in range(hot.shape[1]):
                prefetch_to_write(hot, p, s)
                prefetch_to_write(own, p, s)
                prefetch_to_write(seen, p, s)
    for k in range(tiers.size - 1):
        low, high = due(k, control, tiers)
        if low < high:
            rows = np.float32(control[PERIOD] * rounds(k, control))
            gain = stiff[k] * rows * mean_rate(own, low, high, rate, constants)
            merge_rows(hot, own, seen, low, high, calm(gain, least))


def due(k: Any, control: Any, tiers: Any) -> Any:
    """Which rows of tier ``k`` are merged this time."""
    parts = rounds(k, control)
    first, size, part = tiers[k], tiers[k + 1] - tiers[k], control[EVENT] % parts
    return first + part * size // parts, first + (part + 1) * size // parts


def begin(rest: Any) -> None:
    """Take what all workers have. ``rest`` is what :func:`descend_buffered` gets behind the rates."""
    hot, own, seen = rest[2], rest[3], rest[4]
    for p in range(hot.shape[0]):
        for s in range(hot.shape[1]):
            own[p, s] = seen[p, s] = hot[p, s]


def settle(rest: Any, rates: Any) -> None:
    """Merge everything."""
    hot, own, seen, control, tiers, stiff, constants, least = (
        rest[2], rest[3], rest[4], rest[7], rest[8], rest[9], rest[16], rest[17],
    )  # fmt: skip
    rate = rates[0] if rates.size else np.float32(0)
    for k in range(tiers.size - 1):
        low, high = tiers[k], tiers[k + 1]
        gain = stiff[k] * np.float32(control[PERIOD] * rounds(k, control))
        gain *= mean_rate(own, low, high, rate, constants)
        merge_rows(hot, own, seen, low, high, calm(gain, least))


def rounds(k: Any, control: Any) -> Any:
    """In how many parts tier ``k`` is merged; in few while there is much to learn."""
    return max(1, min(1 << max(k - 1, 0), control[SEEN] // (4 * control[PERIOD])))


def calm(gain: Any, least: Any) -> Any:
    """How much of a worker's change counts, so that all workers' changes together do not overshoot.

    ``gain`` is the share of its distance to the optimum that one worker's steps since the last merge close; ``least``
    is 1 / workers. See :func:`hogwild.kernels.linear.damping`.
    """
    together = gain / (least * np.float32(CALM))
    return np.float32(1) if together <= 1 else max(least, np.float32(1) / together)


def mean_rate(own: Any, low: Any, high: Any, rate: Any, constants: Any) -> Any:
    """How far a unit of gradient moves these rows, in a mean of some of them in which the small count most.

    For those are the steps of coordinates that have been touched often: what is yet untouched needs no care.
    """
    total, count = np.float32(0), np.float32(0)
    for p in range(low, high, SAMPLED):
        total += np.float32(1) / own_rate(own, p, rate, constants) ** 2
        count += np.float32(1)
    return np.sqrt(count / total)


def merge_rows(hot: Any, own: Any, seen: Any, low: Any, high: Any, share: Any) -> None:
    """Add to shared rows what this worker changed: a share of the values, all of what the rule remembers."""
    for p in range(low, high):
        merge_number(hot, own, seen, p, 0, share)
        if hot.shape[1] > 1:  # at most one besides the value
            merge_number(hot, own, seen, p, 1, np.float32(1))


def merge_number(hot: Any, own: Any, seen: Any, p: Any, s: Any, share: Any) -> None:
    """The same of one number."""
    merged = hot[p, s] + share * (own[p, s] - seen[p, s])
    hot[p, s] = merged
    own[p, s] = merged
    seen[p, s] = merged


def look_ahead(indptr: Any, indices: Any, order: Any, k: Any, state: Any, lookup: Any, hots: Any) -> None:
    """Ask for what the terms after the next ones will touch: first for ranks and shares, then for what is not hot."""
    if k + 2 * AHEAD < order.size:
        start, stop = indptr[order[k + 2 * AHEAD]], indptr[order[k + 2 * AHEAD] + 1]
        for j in range(start, stop):
            prefetch(lookup, column(indices, j, start))
        start, stop = indptr[order[k + AHEAD]], indptr[order[k + AHEAD] + 1]
        asked = np.uint64(column(indices, start, start)) if start < stop else np.uint64(0)
        for j in range(start, stop):
            u = np.uint64(column(indices, j, start))
            asked = u if lookup[u, 0] >= hots else asked  # not a branch: the line before is asked for again instead
            prefetch_to_write(state, asked, 0)


def no_look_ahead(indptr: Any, indices: Any, order: Any, k: Any, state: Any, lookup: Any, hots: Any) -> None:
    """Everything is in the cache."""


def only_rank(lookup: Any, u: Any) -> Any:
    """The rank of a coordinate where the cache holds that of all."""
    return lookup[u]


def ranked_part(lookup: Any, shares: Any, u: Any, p: Any) -> Any:
    """A term's part of the penalty on the coordinate of this rank."""
    return shares[p]


def no_part(lookup: Any, shares: Any, u: Any, p: Any) -> Any:
    """There is no penalty."""
    return np.float32(0)


def rank_beside_part(lookup: Any, u: Any) -> Any:
    """The rank of a coordinate where looking it up may cost a trip to memory, which then brings the part as well."""
    return np.uint32(lookup[u, 0])


def part_beside_rank(lookup: Any, shares: Any, u: Any, p: Any) -> Any:
    """A term's part of the penalty on coordinate u."""
    return lookup[u, 1]


def copy_one(to: Any, j: Any, source: Any, p: Any) -> None:
    """Copy a row of one number."""
    to[j, 0] = source[p, 0]


def copy_two(to: Any, j: Any, source: Any, p: Any) -> None:
    """Copy a row of two numbers."""
    to[j, 0], to[j, 1] = source[p, 0], source[p, 1]


def always(place: Any, hots: Any) -> bool:
    """Every coordinate is in the worker's copy."""
    return True


def if_frequent(place: Any, hots: Any) -> bool:
    """The frequent ones are."""
    return bool(place < hots)
