"""The inner loop of a worker that keeps the coordinates it touches most in a copy of its own.

Cache lines that all workers write travel from core to core with every write, and cost more than the arithmetic. Here a
worker steps its own copy of the frequent ("hot") coordinates and merges it with the shared one now and then: the most
frequent often, the rarer the more seldom. Rare coordinates are read and written as ever.

A template like those in :mod:`hogwild.kernels.linear`; besides their names it has ``table`` and ``place`` (where a
coordinate is stepped), ``effective_step`` (how far a unit of gradient moves it) and ``bend`` (of the loss).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.jit import always_inline
from hogwild.kernels.atomics import exchange_if, load, lock, prefetch, prefetch_to_write, unlock
from hogwild.kernels.linear import AHEAD, SMALLEST, damping, fold, merge
from hogwild.kernels.row_layouts import span

# mypy: disable-error-code="name-defined, call-arg, unreachable, assignment"
# ruff: noqa: F821

# What a worker keeps count of: rows since the last merge, merges, rows before it, and rows to go between two merges,
# which grow from the shortest to the longest; and how bent losses are of late, in parts of WHOLE.
WAITING, EVENT, SEEN, PERIOD, SHORTEST, LONGEST, BENT = range(7)
WHOLE = 2**20
LATELY = np.float32(1 / 64)  # weight of a row in that mean
DOOR = 32  # where it says whether somebody is merging: in the middle of an array that has cache lines to itself
LATE = 4  # times the rows between two merges, after which nobody waits any more for the door to open
LINE = 16  # numbers in a cache line
SLOTS = 4  # terms whose coordinates are looked up ahead, at least AHEAD + 1
ALWAYS, MANY = 2, 64  # tiers that are merged as a whole each time; more than there are
SAMPLED = 8  # of so many rows of a copy, one tells how large their steps are
CALM = 2.0  # of the way to the optimum that all workers' steps between two merges may go together


def descend_buffered(
    indptr: Any, indices: Any, values: Any, labels: Any, weights: Any, order: Any, rates: Any, state: Any, bias: Any,
    hot: Any, own: Any, seen: Any, lookup: Any, places: Any, control: Any, tiers: Any, stiff: Any, intercept: Any,
    shares: Any, l1: Any, l2: Any, class_weights: Any, parameter: Any, constants: Any, least: Any,
    stiffness: Any, bias_rate: Any, tilt: Any, door: Any,
) -> float:  # fmt: skip
    """Descend along the terms ``order`` of a model with one output; return their summed loss.

    ``hot`` has the hot coordinates, the most frequent first. ``own`` is this worker's copy of them, in which that of
    rank p is row ``places[p]``, and ``seen`` is what ``hot`` was when they last met. Where not all are hot,
    ``lookup[u, 0]`` is the rank of coordinate u, and beside it, in the same memory, ``shares[u, 1]`` its share of the
    penalty; the row of each coordinate is then looked up once, AHEAD terms before it is needed, and ``noted``. Where
    all are, L2 can be a factor that the copy's values have in common.
    """
    if state.shape[1] != numbers() or own.shape[1] != numbers():  # never, as in hogwild.kernels.linear.descend
        return np.nan
    mine, then = bias.copy(), bias.copy()
    rows, hots, apart = table(state, own), np.uint64(hot.shape[0]), rows_between(state, own)
    alone, exact, scale = control[WAITING], 1.0, np.float32(1)
    total, waiting, moved, pulled = 0.0, 0, np.float32(0), np.float32(0)
    bent, width = np.float32(control[BENT] / WHOLE), longest(indptr, order)
    noted = np.empty(np.uint64(SLOTS) * width, np.uint64)
    for k in range(order.size):
        i = order[k]
        ahead(indptr, indices, order, k, state, lookup, hots, apart, noted, width)
        start, stop = span(indptr, i)
        shift = np.uint64(k % SLOTS) * width - start
        z = mine[0, 0] + scale * dot_of_copy(rows, indices, values, start, stop, noted, shift)
        cost, slope = loss(float(z), float(labels[i]), parameter)
        weight = class_weights[1 if labels[i] > 0 else 0] * (weights[i] if weights.size else np.float32(1))
        total += cost * weight
        g, rate = np.float32(slope * weight), rates[k]
        bent += LATELY * (np.float32(bend(slope)) * weight - bent)
        if not skip(g):
            pull = g / scale
            for j in range(start, stop):
                u = column(indices, j, start)
                p1, p2 = penalty1(shares, u, l1), penalty2(shares, u, l2)
                step(rows, place(u, noted, j + shift), pull * value(values, j), rate, p1, p2, constants)
            if intercept:
                before = mine[0, 0]
                step(mine, 0, g + tilt, rate * bias_rate, np.float32(0), np.float32(0), constants)
                moved += abs(mine[0, 0] - before)
                pulled += abs(g + tilt)
        exact = decayed(exact, rate, l2)
        if exact < SMALLEST:
            fold(own, exact)
            exact = 1.0
        scale = np.float32(exact)
        waiting += 1
        alone += 1
        if alone >= control[PERIOD]:
            entered = try_lock_merge(door)
            if entered or alone >= LATE * control[PERIOD]:
                control[WAITING], alone, pace = alone, 0, bent * rate
                plan_merge(hot, seen, control, tiers)
                merge_due_tiers(hot, own, seen, places, scale, control, tiers, 0, ALWAYS, stiff, pace, least, constants)
                if intercept:
                    merge(bias, mine, then, damping(moved, pulled, waiting, least, stiffness))
                    waiting, moved, pulled = 0, np.float32(0), np.float32(0)
                if entered:
                    unlock(door, DOOR)
                merge_due_tiers(
                    hot, own, seen, places, scale, control, tiers, ALWAYS, MANY, stiff, pace, least, constants
                )
    control[WAITING], control[BENT] = alone, np.int64(bent * WHOLE) if bent >= 0 else WHOLE  # not a number: start anew
    if intercept and waiting:
        merge(bias, mine, then, damping(moved, pulled, waiting, least, stiffness))
    if exact != 1:
        fold(own, exact)
    return total


@always_inline
def dot_of_copy(rows: Any, indices: Any, values: Any, start: Any, stop: Any, noted: Any, shift: Any) -> Any:
    """The score of a row; four sums are in flight, as in :func:`hogwild.kernels.dot.dot`."""
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    z0 = z1 = z2 = z3 = np.float32(0)
    j = start
    while j + four <= stop:
        z0 += rows[place(column(indices, j, start), noted, j + shift), 0] * value(values, j)
        z1 += rows[place(column(indices, j + one, start), noted, j + one + shift), 0] * value(values, j + one)
        z2 += rows[place(column(indices, j + two, start), noted, j + two + shift), 0] * value(values, j + two)
        z3 += rows[place(column(indices, j + three, start), noted, j + three + shift), 0] * value(values, j + three)
        j += four
    while j < stop:
        z0 += rows[place(column(indices, j, start), noted, j + shift), 0] * value(values, j)
        j += one
    return (z0 + z1) + (z2 + z3)


def own_table(state: Any, own: Any) -> Any:
    """Every coordinate is in the worker's copy."""
    return own


def shared_table(state: Any, own: Any) -> Any:
    """Rare coordinates are in the shared table; so are hot ones, if one counts on far enough."""
    return state


def rows_between(state: Any, own: Any) -> Any:
    """How many rows of the shared table it is, modulo 2^64, from its first one to the first one of the worker's copy.

    A number is chosen without a branch, a table is not. Which of a term's coordinates are hot nobody can foresee, and a
    branch mispredicted costs more than a step.
    """
    there = np.uint64(own.ctypes.data) - np.uint64(state.ctypes.data)
    return np.uint64(np.int64(there) // np.int64(own.itemsize * own.shape[1]))


def as_numbered(u: Any, noted: Any, at: Any) -> Any:
    """The row of a coordinate where the worker's copy has them all."""
    return u


def as_noted(u: Any, noted: Any, at: Any) -> Any:
    """The row of a coordinate as it was found when it was looked up ahead."""
    return noted[at]


def as_ranked(lookup: Any, u: Any, hots: Any, apart: Any) -> Any:
    """The row of a coordinate in the worker's copy if it is hot, else in the shared table."""
    rank = np.uint64(lookup[u, 0])
    return rank + apart if rank < hots else np.uint64(u)


def longest(indptr: Any, order: Any) -> Any:
    """How many coordinates the longest of these terms has."""
    most = np.uint64(0)
    for k in range(order.size):
        start, stop = span(indptr, order[k])
        most = max(most, stop - start)
    return most


def none(indptr: Any, order: Any) -> Any:
    """Nothing is looked up ahead."""
    return np.uint64(0)


def part_beside_rank(shares: Any, u: Any, strength: Any) -> Any:
    """A term's part of the penalty on coordinate u, where looking it up may cost a trip to memory: with its rank."""
    return strength * shares[u, 1]


def try_lock_merge(door: Any) -> bool:
    """Be the one who merges, unless somebody else is: then there is nothing to wait for, the next row will do.

    Of two who merge at the same time one undoes what the other did, and the cache lines go back and forth between them.
    """
    return load(door, DOOR) == 0 and exchange_if(door, DOOR, 0, 1)


def plan_merge(hot: Any, seen: Any, control: Any, tiers: Any) -> None:
    """Count, and ask for all lines that will be written before the first is: so they travel at the same time."""
    control[SEEN] += control[WAITING]
    control[EVENT] += 1
    control[PERIOD] = max(control[SHORTEST], min(control[LONGEST], control[SEEN] // 4))
    for k in range(tiers.size - 1):
        low, high = due(k, control, tiers)
        for p in range(low, high, max(1, LINE // hot.shape[1])):
            for s in range(hot.shape[1]):
                prefetch_to_write(hot, p, s)
                prefetch_to_write(seen, p, s)


def merge_due_tiers(
    hot: Any, own: Any, seen: Any, places: Any, scale: Any, control: Any, tiers: Any, first: Any, last: Any, stiff: Any,
    rate: Any, least: Any, constants: Any,
) -> None:  # fmt: skip
    """Merge what is due of tiers: all of the first ones, and a part of each other, which has twice the rows of the
    one before it.

    So every merge costs about the same, and a tier that is half as frequent waits twice as long.
    """
    for k in range(first, min(last, tiers.size - 1)):
        low, high = due(k, control, tiers)
        if low < high:
            rows = np.float32(control[WAITING] * rounds(k, control))
            gain = stiff[k] * rows * mean_rate(own, places, low, high, rate, constants)
            merge_rows(hot, own, seen, places, low, high, replica_damping(gain, least), scale)


def due(k: Any, control: Any, tiers: Any) -> Any:
    """Which rows of tier ``k`` are merged this time."""
    parts = rounds(k, control)
    first, size, part = tiers[k], tiers[k + 1] - tiers[k], control[EVENT] % parts
    return first + part * size // parts, first + (part + 1) * size // parts


def begin(rest: Any) -> None:
    """Take what all workers have. ``rest`` is what :func:`descend_buffered` gets behind the rates."""
    hot, own, seen, places = rest[2], rest[3], rest[4], rest[6]
    for p in range(hot.shape[0]):
        for s in range(hot.shape[1]):
            own[places[p], s] = seen[p, s] = hot[p, s]


def settle(rest: Any, rates: Any) -> None:
    """Merge everything."""
    hot, own, seen, places, control, tiers, stiff, constants, least, door = (
        rest[2], rest[3], rest[4], rest[6], rest[7], rest[8], rest[9], rest[16], rest[17], rest[21],
    )  # fmt: skip
    rate = np.float32(control[BENT] / WHOLE) * (rates[0] if rates.size else np.float32(0))
    for k in range(tiers.size - 1):
        low, high = tiers[k], tiers[k + 1]
        gain = stiff[k] * np.float32(control[PERIOD] * rounds(k, control))
        gain *= mean_rate(own, places, low, high, rate, constants)
        if k < ALWAYS:  # here all workers would be at the same time
            lock(door, DOOR)
        merge_rows(hot, own, seen, places, low, high, replica_damping(gain, least), np.float32(1))
        if k < ALWAYS:
            unlock(door, DOOR)


def rounds(k: Any, control: Any) -> Any:
    """In how many parts tier ``k`` is merged; in few while there is much to learn."""
    return max(1, min(1 << max(k - ALWAYS + 1, 0), control[SEEN] // (4 * control[PERIOD])))


def replica_damping(gain: Any, least: Any) -> Any:
    """How much of a worker's change counts, so that all workers' changes together do not overshoot.

    ``gain`` is the share of its distance to the optimum that one worker's steps since the last merge close; ``least``
    is 1 / workers. See :func:`hogwild.kernels.linear.damping`.
    """
    together = gain / (least * np.float32(CALM))
    return np.float32(1) if together <= 1 else max(least, np.float32(1) / together)


def mean_rate(own: Any, places: Any, low: Any, high: Any, rate: Any, constants: Any) -> Any:
    """How far a unit of gradient moves these rows, in a mean of some of them in which the small count most.

    For those are the steps of coordinates that have been touched often: what is yet untouched needs no care.
    """
    total, count = np.float32(0), np.float32(0)
    for p in range(low, high, SAMPLED):
        total += np.float32(1) / effective_step(own, places[p], rate, constants) ** 2
        count += np.float32(1)
    return np.sqrt(count / total)


def merge_rows(hot: Any, own: Any, seen: Any, places: Any, low: Any, high: Any, share: Any, scale: Any) -> None:
    """Add to shared rows what this worker changed: a share of the values, all of what the rule remembers.

    The values of its own are ``scale`` times what is written.
    """
    one = np.float32(1)
    for p in range(np.uint64(low), np.uint64(high)):
        merge_number(hot, own, seen, places[p], p, np.uint64(0), share, scale, one / scale)
        if hot.shape[1] > 1:  # at most one besides the value
            merge_number(hot, own, seen, places[p], p, np.uint64(1), one, one, one)


def merge_number(hot: Any, own: Any, seen: Any, at: Any, p: Any, s: Any, share: Any, scale: Any, inverse: Any) -> None:
    """The same of one number."""
    merged = hot[p, s] + share * (scale * own[at, s] - seen[p, s])
    hot[p, s] = merged
    own[at, s] = inverse * merged
    seen[p, s] = merged


def look_ahead(
    indptr: Any, indices: Any, order: Any, k: Any, state: Any, lookup: Any, hots: Any, apart: Any, noted: Any,
    width: Any,
) -> None:  # fmt: skip
    """Ask for what the terms after the next ones will touch, first for ranks and shares, then for rows; note which."""
    if k == 0:
        for soon in range(min(AHEAD, order.size)):
            note(indptr, indices, order, soon, state, lookup, hots, apart, noted, width)
    if k + 2 * AHEAD < order.size:
        start, stop = span(indptr, order[k + 2 * AHEAD])
        for j in range(start, stop):
            prefetch(lookup, column(indices, j, start))
    if k + AHEAD < order.size:
        note(indptr, indices, order, k + AHEAD, state, lookup, hots, apart, noted, width)


def note(
    indptr: Any, indices: Any, order: Any, k: Any, state: Any, lookup: Any, hots: Any, apart: Any, noted: Any,
    width: Any,
) -> None:  # fmt: skip
    """Look up the rows of a term's coordinates, and ask for them."""
    start, stop = span(indptr, order[k])
    shift = np.uint64(k % SLOTS) * width - start
    for j in range(start, stop):
        row = as_ranked(lookup, column(indices, j, start), hots, apart)
        noted[j + shift] = row
        prefetch_to_write(state, row, 0)


def no_look_ahead(
    indptr: Any, indices: Any, order: Any, k: Any, state: Any, lookup: Any, hots: Any, apart: Any, noted: Any,
    width: Any,
) -> None:  # fmt: skip
    """Everything is in the cache."""
