"""Inner loop of a worker that keeps a replica of the hot coordinates.

Cache lines that all workers write move from core to core with every write, and cost more than the arithmetic. With this
loop, a worker steps its own replica of the frequent ("hot") coordinates and merges it periodically with the shared
values. The most frequent coordinates are merged most often. Workers read and write rare coordinates in place.

Sums of the workers' changes equal steps one after the other as long as all steps between two merges are short together
(see :mod:`hogwild.kernels.linear_parallel`). So each tier of coordinates is merged as often as its largest eigenvalue
and its step sizes require. Where that would be too often, only a share of the changes is merged.

The loop is a template like those in :mod:`hogwild.kernels.linear`, and binds four more names. ``table`` and ``place``
give the location where a coordinate is stepped. ``effective_step`` is the change of a coordinate per unit of gradient.
``bend`` is the curvature of the loss.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.jit import always_inline
from hogwild.kernels.atomics import exchange_if, load, lock, unlock
from hogwild.kernels.linear import AHEAD, SMALLEST, damping, fold, merge
from hogwild.kernels.row_layouts import span
from hogwild.prefetch import prefetch, prefetch_to_write

# mypy: disable-error-code="name-defined, call-arg, unreachable, assignment"
# ruff: noqa: F821

# Entries of a worker's control array. WAITING: rows since the last merge. EVENT: number of merges. PERIOD: rows between
# two merges of the first tier, from SHORTEST to LONGEST. BENT: recent mean curvature of the losses, in units of
# 1 / WHOLE. WORKER: number of the worker.
WAITING, EVENT, PERIOD, SHORTEST, LONGEST, BENT, WORKER = range(7)
WHOLE = 2**20
# Rows of a worker's array about tiers. SINCE: rows since the last merge of a tier. PACE: mean change of its coordinates
# for a gradient and a step size of 1, as of the last merge.
SINCE, PACE = 0, 1
# Weight of one row in the exponential mean of the curvature.
LATELY = np.float32(1 / 64)
LINE = 16  # Number of float32 numbers in a cache line; of integers there are two lines in it.
SEGMENT = 64  # Coordinates with a lock of their own.
# Number of terms for which rows are looked up ahead, at least AHEAD + 1.
SLOTS = 4
# Rows of a replica per row that is sampled to estimate the effective step size.
SAMPLED = 8
# Sum of all workers' steps between two merges, as a multiple of the distance to the optimum. DUE: at which a tier is
# merged. CALM: above which only a share of the changes is merged, so that this sum is CALM. A share slows down all
# directions, of which only the steepest one needs it. So tiers are merged before they need it, where that is possible.
DUE, CALM = 0.5, 1.0
# Coordinates of a tier, for each row between two merges, at most: a coordinate is merged 250 times as fast as a row of
# text is trained.
WORTH = 256


def descend_buffered(
    indptr: Any, indices: Any, values: Any, labels: Any, weights: Any, order: Any, rates: Any, state: Any, bias: Any,
    hot: Any, own: Any, seen: Any, lookup: Any, places: Any, control: Any, tiers: Any, stiff: Any, intercept: Any,
    shares: Any, l1: Any, l2: Any, class_weights: Any, parameter: Any, constants: Any, least: Any,
    stiffness: Any, bias_rate: Any, tilt: Any, locks: Any, about_tiers: Any,
) -> float:  # fmt: skip
    """Descend along the terms ``order`` of a model with one output; return their summed loss.

    ``hot`` holds the hot coordinates, the most frequent first. ``own`` is this worker's replica of them: the coordinate
    of rank p is its row ``places[p]``. ``seen`` is a copy of ``hot`` as of the last merge.

    Where not all coordinates are hot, ``lookup[u, 0]`` is the rank of coordinate u. Beside the rank, in the same
    memory, ``shares[u, 1]`` is the coordinate's share of the penalty. The kernel then looks up the row of each
    coordinate once, AHEAD terms before its use, and stores it in ``noted``. Where all coordinates are hot, L2 can be a
    common factor of the replica's values.
    """
    # This branch is never taken, as in hogwild.kernels.linear.descend.
    if state.shape[1] != numbers() or own.shape[1] != numbers():
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
            merge_due_tiers(
                hot, own, seen, places, scale, control, about_tiers, tiers, stiff, alone, bent, rate, least, constants,
                locks, np.bool_(False),
            )  # fmt: skip
            alone = 0
            if intercept:
                merge(bias, mine, then, damping(moved, pulled, waiting, least, stiffness / np.float32(CALM)))
                waiting, moved, pulled = 0, np.float32(0), np.float32(0)
    # If the mean is NaN, it restarts at WHOLE, which stands for a curvature of 1.
    control[WAITING], control[BENT] = alone, np.int64(bent * WHOLE) if bent >= 0 else WHOLE
    if intercept and waiting:
        merge(bias, mine, then, damping(moved, pulled, waiting, least, stiffness))
    if exact != 1:
        fold(own, exact)
    return total


@always_inline
def dot_of_copy(rows: Any, indices: Any, values: Any, start: Any, stop: Any, noted: Any, shift: Any) -> Any:
    """Return the score of a row, computed as four partial sums as in :func:`hogwild.kernels.row_layouts.dot`."""
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
    """Return the replica, which has every coordinate."""
    return own


def shared_table(state: Any, own: Any) -> Any:
    """Return the shared table, which has the rare coordinates.

    Rows of the replica can be addressed from the shared table too, by the offset of :func:`rows_between`.
    """
    return state


def rows_between(state: Any, own: Any) -> Any:
    """Return the offset from the first row of the shared table to the first row of the replica, in rows modulo 2^64.

    The kernel can select a number without a branch, but not a table. The pattern of hot coordinates in a term is
    unpredictable, and a mispredicted branch costs more than a step.
    """
    there = np.uint64(own.ctypes.data) - np.uint64(state.ctypes.data)
    return np.uint64(np.int64(there) // np.int64(own.itemsize * own.shape[1]))


def as_numbered(u: Any, noted: Any, at: Any) -> Any:
    """Return the row of a coordinate where the replica has all coordinates."""
    return u


def as_noted(u: Any, noted: Any, at: Any) -> Any:
    """Return the row of a coordinate that was looked up ahead."""
    return noted[at]


def as_ranked(lookup: Any, u: Any, hots: Any, apart: Any) -> Any:
    """Return the row of a coordinate: in the replica if the coordinate is hot, else in the shared table."""
    rank = np.uint64(lookup[u, 0])
    return rank + apart if rank < hots else np.uint64(u)


def longest(indptr: Any, order: Any) -> Any:
    """Return the number of coordinates of the longest of these terms."""
    most = np.uint64(0)
    for k in range(order.size):
        start, stop = span(indptr, order[k])
        most = max(most, stop - start)
    return most


def none(indptr: Any, order: Any) -> Any:
    """Return 0, as no rows are looked up ahead."""
    return np.uint64(0)


def part_beside_rank(shares: Any, u: Any, strength: Any) -> Any:
    """Return a term's share of the penalty on coordinate u, read from the cache line of its rank.

    A separate array of shares could cost another access to main memory.
    """
    return strength * shares[u, 1]


def merge_due_tiers(
    hot: Any, own: Any, seen: Any, places: Any, scale: Any, control: Any, about_tiers: Any, tiers: Any, stiff: Any,
    waited: Any, bent: Any, rate: Any, least: Any, constants: Any, locks: Any, everything: Any,
) -> None:  # fmt: skip
    """Merge the tiers that are due, or everything; skip segments that another worker is just merging.

    ``waited`` is the number of rows since the last call. The first tier is always due, and decides when the next call
    is. Another tier is due when the steps of all workers since its last merge have become long together.
    """
    control[EVENT] += 1
    for k in range(tiers.size - 1):
        about_tiers[SINCE, k] += waited
        low, high, rows = tiers[k], tiers[k + 1], about_tiers[SINCE, k]
        together = rows * stiff[k] * bent * rate * about_tiers[PACE, k] / least
        if k > 0 and not everything and (together < DUE or rows * WORTH < high - low):
            continue
        about_tiers[PACE, k] = mean_pace(own, places, low, high, constants)
        gain = stiff[k] * bent * rate * about_tiers[PACE, k] / least
        if k == 0 and gain > 0:
            period = np.int64(min(DUE / gain, 1e9))
            control[PERIOD] = max(control[SHORTEST], min(control[LONGEST], period))
        if merge_segments(hot, own, seen, places, low, high, replica_damping(rows * gain, least), scale, control, locks,
                          least, everything):  # fmt: skip
            about_tiers[SINCE, k] = 0


def merge_segments(
    hot: Any, own: Any, seen: Any, places: Any, low: Any, high: Any, share: Any, scale: Any, control: Any, locks: Any,
    least: Any, everything: Any,
) -> bool:  # fmt: skip
    """Merge the segments of a tier; return whether none was left out.

    Each worker begins with another segment, so that workers rarely meet.
    """
    first, complete = low // SEGMENT, True
    count = (high + SEGMENT - 1) // SEGMENT - first
    offset = np.int64(count * control[WORKER] * least)
    for number in range(count):
        at = first + (number + offset) % count
        if everything:
            lock(locks, at * LINE)
        elif load(locks, at * LINE) != 0 or not exchange_if(locks, at * LINE, 0, 1):
            complete = False
            continue
        start, stop = max(low, at * SEGMENT), min(high, (at + 1) * SEGMENT)
        for p in range(start, stop, max(1, LINE // hot.shape[1])):
            for s in range(hot.shape[1]):
                prefetch_to_write(hot, p, s)
        merge_rows(hot, own, seen, places, start, stop, share, scale)
        unlock(locks, at * LINE)
    return complete


def begin(data: Any, order: Any, rates: Any, rest: Any) -> None:
    """Copy the shared values to the replica.

    ``rest`` holds the arguments of :func:`descend_buffered` after the rates.
    """
    hot, own, seen, places, about_tiers = rest[2], rest[3], rest[4], rest[6], rest[22]
    about_tiers[SINCE] = 0
    for p in range(hot.shape[0]):
        for s in range(hot.shape[1]):
            own[places[p], s] = seen[p, s] = hot[p, s]


def end(data: Any, order: Any, rates: Any, rest: Any) -> None:
    """Merge the whole replica at the end of a worker's parts."""
    settle(rest, rates)


def settle(rest: Any, rates: Any) -> None:
    """Merge the whole replica."""
    hot, own, seen, places, control, tiers, stiff, constants, least, locks, about_tiers = (
        rest[2], rest[3], rest[4], rest[6], rest[7], rest[8], rest[9], rest[16], rest[17], rest[21], rest[22],
    )  # fmt: skip
    rate, waited = rates[0] if rates.size else np.float32(0), control[WAITING]
    control[WAITING] = 0
    merge_due_tiers(
        hot, own, seen, places, np.float32(1), control, about_tiers, tiers, stiff, waited,
        np.float32(control[BENT] / WHOLE), rate, least, constants, locks, np.bool_(True),
    )  # fmt: skip


def replica_damping(together: Any, least: Any) -> Any:
    """Return the share of a worker's change to merge, so that all workers' changes together do not overshoot.

    ``together`` is the fraction of the distance to the optimum that the steps of all workers since the last merge
    close. ``least`` is 1 / workers. See :func:`hogwild.kernels.linear.damping`.
    """
    return np.float32(1) if together <= CALM else np.float32(max(least, CALM / together))


def mean_pace(own: Any, places: Any, low: Any, high: Any, constants: Any) -> Any:
    """Return the mean change of these rows for a gradient and a step size of 1, from a sample of one in SAMPLED rows.

    The mean is the inverse root mean square of the inverses, so the smallest steps count most. Small steps belong to
    coordinates that were stepped often. Coordinates that were not stepped yet need no damping.
    """
    total, count = np.float32(0), np.float32(0)
    for p in range(low, high, SAMPLED):
        total += np.float32(1) / effective_step(own, places[p], np.float32(1), constants) ** 2
        count += np.float32(1)
    return np.sqrt(count / total)


def merge_rows(hot: Any, own: Any, seen: Any, places: Any, low: Any, high: Any, share: Any, scale: Any) -> None:
    """Add this worker's changes to shared rows: a share of each value, and the whole of the rule's state.

    The replica's values are ``scale`` times the stored numbers.
    """
    one = np.float32(1)
    for p in range(np.uint64(low), np.uint64(high)):
        merge_number(hot, own, seen, places[p], p, np.uint64(0), share, scale, one / scale)
        # A row has at most one number besides the value.
        if hot.shape[1] > 1:
            merge_number(hot, own, seen, places[p], p, np.uint64(1), one, one, one)


def merge_number(hot: Any, own: Any, seen: Any, at: Any, p: Any, s: Any, share: Any, scale: Any, inverse: Any) -> None:
    """Merge one number of a row."""
    merged = hot[p, s] + share * (scale * own[at, s] - seen[p, s])
    hot[p, s] = merged
    own[at, s] = inverse * merged
    seen[p, s] = merged


def look_ahead(
    indptr: Any, indices: Any, order: Any, k: Any, state: Any, lookup: Any, hots: Any, apart: Any, noted: Any,
    width: Any,
) -> None:  # fmt: skip
    """Prefetch the parameters of later terms, and look up their rows.

    The kernel prefetches ranks and shares ``2 * AHEAD`` terms ahead, and rows ``AHEAD`` terms ahead.
    """
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
    """Look up the rows of a term's coordinates, store them in ``noted``, and prefetch them."""
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
    """Do nothing, as all parameters are in the cache."""
