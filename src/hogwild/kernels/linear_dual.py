"""Inner loops of dual coordinate ascent (SDCA) for linear models with one output, by one worker or by several.

Each worker of several has a replica of all weights, and adds its changes to the shared weights at intervals. As in
:mod:`hogwild.kernels.linear_parallel`, sums of changes equal steps one after the other as long as all steps between two
merges are short together. So each tier of features is merged as often as its largest eigenvalue requires. The dual
variable of a row belongs to the worker that visits the row.

Both loops repeat the visit of a row: in a function of its own, it was up to 40% slower. The loops are templates, and
bind ``loss``, ``prox``, ``dot``, ``column``, ``value`` and ``squared_norm``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.kernels.atomics import exchange_if, load, lock, unlock
from hogwild.kernels.linear_epochs import prefetch_row
from hogwild.kernels.row_layouts import span
from hogwild.prefetch import prefetch_to_write
from hogwild.rules.sdca import DUAL, INTERCEPT, SQUARED_NORM, SUM

# mypy: disable-error-code="name-defined, call-arg, unreachable"
# ruff: noqa: F821

LINE = 16  # weights in a cache line; of integers there are two lines in it
SEGMENT = 64  # weights with a lock of their own
# Constants of a problem. ROW_STEP: change of a weight for a change of a dual variable by 1 and a value of 1, which is
# 1 / (l2 rows). BIAS_STEP: that of the intercept. DRIFT: change of the intercept after each row, by the method of
# multipliers, for a sum of dual variables of 1. WORKERS: their number. MERGED: part of the distance to the optimum that
# the steps of all workers between two merges of a tier may close together.
ROW_STEP, BIAS_STEP, DRIFT, WORKERS, MERGED = range(5)
AHEAD = np.uint64(2)  # rows between the prefetch of a row and its use


def ascend(
    indptr: Any, indices: Any, values: Any, labels: Any, weights: Any, order: Any, rates: Any, state: Any, bias: Any,
    duals: Any, class_weights: Any, parameter: Any, constants: Any,
) -> float:  # fmt: skip
    """Ascend along the dual variables of the rows ``order``; return the rows' summed loss."""
    # This branch is never taken, but tells the compiler the number of columns.
    if state.shape[1] != 1 or duals.shape[1] != 2:
        return np.nan
    intercept, sum_of_duals, total = bias[0, INTERCEPT], bias[0, SUM], 0.0
    row_step, bias_step, drift = constants[ROW_STEP], constants[BIAS_STEP], constants[DRIFT]
    last = np.uint64(order.size)
    for k in range(last):
        i = order[k]
        start, stop = span(indptr, i)
        if k + AHEAD < last:
            prefetch_row(indptr, indices, values, order[k + AHEAD])
            prefetch_to_write(duals, order[k + AHEAD], 0)
        z = intercept + np.float64(dot(state, indices, values, start, stop))
        weight = np.float64(class_weights[1 if labels[i] > 0 else 0] * (weights[i] if weights.size else np.float32(1)))
        total += weight * loss(z, np.float64(labels[i]), parameter)[0]
        if duals[i, SQUARED_NORM] == 0:
            duals[i, SQUARED_NORM] = squared_norm(values, start, stop)
        change = ascend_row(duals, i, z, np.float64(labels[i]), weight, np.float64(rates[k]), parameter, constants)
        if change != 0.0:
            add = np.float32(change * row_step)
            for j in range(start, stop):
                state[column(indices, j, start), 0] += add * value(values, j)
        sum_of_duals += change
        intercept += change * bias_step + sum_of_duals * drift
    bias[0, INTERCEPT], bias[0, SUM] = intercept, sum_of_duals
    return total


def ascend_row(
    duals: Any, i: Any, z: Any, label: Any, weight: Any, rate: Any, parameter: Any, constants: Any
) -> Any:  # fmt: skip
    """Maximise the dual objective along the dual variable of a row with score ``z``; return the variable's change.

    A change by 1 changes the score by ``slope``. Divided by a ``rate`` below 1, the steps are shorter.
    """
    slope = (np.float64(duals[i, SQUARED_NORM]) * constants[ROW_STEP] + constants[BIAS_STEP]) / max(rate, 1e-30)
    if rate <= 0.0 or not slope > 0.0:
        return 0.0
    before = np.float64(duals[i, DUAL])
    v = z - slope * before
    duals[i, DUAL] = (prox(v, slope * weight, label, parameter, z) - v) / slope
    return np.float64(duals[i, DUAL]) - before


def squared_norm(values: Any, start: Any, stop: Any) -> Any:
    """Return the squared norm of a row."""
    # Four sums, because each addition waits for the one before it.
    s0 = s1 = s2 = s3 = np.float32(0)
    j, one, two, three, four = np.uint64(start), np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    while j + four <= stop:
        s0 += value(values, j) * value(values, j)
        s1 += value(values, j + one) * value(values, j + one)
        s2 += value(values, j + two) * value(values, j + two)
        s3 += value(values, j + three) * value(values, j + three)
        j += four
    while j < stop:
        s0 += value(values, j) * value(values, j)
        j += one
    return (s0 + s1) + (s2 + s3)


def ascend_with_replica(
    indptr: Any, indices: Any, values: Any, labels: Any, weights: Any, order: Any, rates: Any, state: Any, bias: Any,
    duals: Any, class_weights: Any, parameter: Any, constants: Any, shared: Any, own: Any, seen: Any, since: Any,
    places: Any, tiers: Any, gains: Any, locks: Any, biases: Any, worker: Any,
) -> float:  # fmt: skip
    """Ascend as :func:`ascend` does, with a replica ``own`` of all weights.

    ``shared`` holds the shared weights, the most frequent feature first: the weight of rank p is ``own[places[p]]``.
    ``seen`` is a copy of ``shared`` as of this worker's last merges, and ``biases`` are the worker's intercept and sum
    of dual variables, and those of its last merge. ``since`` has the rows since the last merge of each tier, of which
    each row closes ``gains`` of the distance to the optimum.
    """
    if own.shape[1] != 1 or duals.shape[1] != 2:
        return np.nan
    total = 0.0
    row_step, bias_step, drift = constants[ROW_STEP], constants[BIAS_STEP], constants[DRIFT]
    last, waited = np.uint64(order.size), np.int64(0)
    period = np.int64(constants[MERGED] / (gains[0] * constants[WORKERS])) + 1
    for k in range(last):
        i = order[k]
        start, stop = span(indptr, i)
        if k + AHEAD < last:
            prefetch_row(indptr, indices, values, order[k + AHEAD])
            prefetch_to_write(duals, order[k + AHEAD], 0)
        z = biases[0, INTERCEPT] + np.float64(dot(own, indices, values, start, stop))
        weight = np.float64(class_weights[1 if labels[i] > 0 else 0] * (weights[i] if weights.size else np.float32(1)))
        total += weight * loss(z, np.float64(labels[i]), parameter)[0]
        if duals[i, SQUARED_NORM] == 0:
            duals[i, SQUARED_NORM] = squared_norm(values, start, stop)
        change = ascend_row(duals, i, z, np.float64(labels[i]), weight, np.float64(rates[k]), parameter, constants)
        if change != 0.0:
            add = np.float32(change * row_step)
            for j in range(start, stop):
                own[column(indices, j, start), 0] += add * value(values, j)
        biases[0, SUM] += change
        biases[0, INTERCEPT] += change * bias_step + biases[0, SUM] * drift
        waited += 1
        if waited >= period:
            merge_due(
                shared, bias, own, seen, biases, since, waited, places, tiers, gains, locks, constants, worker,
                np.bool_(False),
            )  # fmt: skip
            waited = np.int64(0)
    for k in range(since.size):
        since[k] += waited
    return total


def merge_due(
    shared: Any, bias: Any, own: Any, seen: Any, biases: Any, since: Any, waited: Any, places: Any, tiers: Any,
    gains: Any, locks: Any, constants: Any, worker: Any, everything: Any,
) -> None:  # fmt: skip
    """Merge the tiers that are due, or everything; skip segments that another worker is just merging.

    No change may be lost, because weights and dual variables belong together.
    """
    for k in range(tiers.size - 1):
        since[k] += waited
        if not everything and since[k] * constants[WORKERS] * gains[k] < constants[MERGED]:
            continue
        low = tiers[k] // SEGMENT
        count, missed = (tiers[k + 1] + SEGMENT - 1) // SEGMENT - low, False
        for number in range(count):
            at = low + (number + count * worker // np.int64(constants[WORKERS])) % count
            place = at * LINE
            if everything:
                lock(locks, place)
            elif load(locks, place) != 0 or not exchange_if(locks, place, 0, 1):
                missed = True
                continue
            merge_segment(shared, own, seen, places, at * SEGMENT, min((at + 1) * SEGMENT, tiers[k + 1]))
            if at == 0:
                for column_ in range(2):
                    bias[0, column_] += biases[0, column_] - biases[1, column_]
                    biases[0, column_] = biases[1, column_] = bias[0, column_]
            unlock(locks, place)
        if not missed:
            since[k] = 0


def merge_segment(shared: Any, own: Any, seen: Any, places: Any, low: Any, high: Any) -> None:
    """Add this worker's changes to a segment of the shared weights, and take over the others' changes."""
    for p in range(low, high, LINE):
        prefetch_to_write(shared, p, 0)
    for p in range(np.uint64(low), np.uint64(high)):
        u = np.uint64(places[p])
        merged = shared[p, 0] + (own[u, 0] - seen[p, 0])
        shared[p, 0] = merged
        own[u, 0] = merged
        seen[p, 0] = merged


def begin(data: Any, order: Any, rates: Any, rest: Any) -> None:
    """Copy the shared weights to the replica; ``rest`` holds the arguments of the loop after the rates."""
    bias, shared, own, seen, places, biases = rest[1], rest[6], rest[7], rest[8], rest[10], rest[14]
    for p in range(shared.shape[0]):
        own[places[p], 0] = seen[p, 0] = shared[p, 0]
    for column_ in range(2):
        biases[0, column_] = biases[1, column_] = bias[0, column_]


def end(data: Any, order: Any, rates: Any, rest: Any) -> None:
    """Merge the whole replica at the end of a worker's parts."""
    settle(rest)


def settle(rest: Any) -> None:
    """Merge the whole replica."""
    bias, constants, shared, own, seen = rest[1], rest[5], rest[6], rest[7], rest[8]
    since, places, tiers, gains, locks, biases, worker = (
        rest[9], rest[10], rest[11], rest[12], rest[13], rest[14], rest[15],
    )  # fmt: skip
    merge_due(shared, bias, own, seen, biases, since, 0, places, tiers, gains, locks, constants, worker, np.bool_(True))


def new_locks(weights: int) -> NDArray[np.int64]:
    """Return free locks of the segments of this number of weights."""
    return np.zeros((weights // SEGMENT + 1) * LINE, np.int64)
