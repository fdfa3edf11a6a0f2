"""Whole fits of linear models by several workers that do not wait for each other: one call of compiled code for each.

Workers claim blocks of rows, epoch after epoch. Each one trains a replica of the frequent weights. At intervals it adds
its changes to the shared weights, and takes over those of the others. Sums of changes equal steps one after the
other as long as all steps between two merges are short together: step size x rows of all workers x largest eigenvalue
of the features' second moments at most about 1. The few most frequent features have nearly all of this eigenvalue. So
features are divided into tiers by frequency, and each tier is merged as often as its own eigenvalue requires. Features
that are too rare for replicas are trained in place, without locks (Niu et al. 2011).

The loops are templates like those in :mod:`hogwild.kernels.linear_epochs`, and bind the same names.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.kernels.atomics import exchange_if, fetch_add, load, lock, store, unlock
from hogwild.kernels.futex import nap
from hogwild.kernels.linear_epochs import (
    ALPHA,
    BLOCK,
    CONSTANT,
    DONE,
    EPOCHS,
    INTERCEPT,
    INTERCEPT_GRADIENT,
    INTERCEPT_STEP,
    L1_RATIO,
    LOSSES,
    MAX_EPOCHS,
    OPTIMAL,
    PARAMETER,
    PENALTIES,
    POWER,
    ROW,
    RUNNING,
    SCALE,
    SCHEDULE,
    SEED,
    SQUARES,
    STEP,
    STEP_ALPHA,
    T0,
    UPDATES,
    end_epoch,
    prefetch_row,
    row_weight,
    shuffle,
    step_size,
)
from hogwild.kernels.row_layouts import span
from hogwild.prefetch import prefetch_to_write

# mypy: disable-error-code="call-arg, unreachable, name-defined"
# ruff: noqa: F821

LINE = 16  # positions in a cache line, of weights in single precision; of integers there are two lines in it
# Positions in the control array, each in cache lines of its own. CLAIMED: blocks claimed so far, those of earlier
# epochs included. STOPPED: whether no block is to be claimed any more. READY: epochs whose order of blocks is known.
# GATE: lock of the worker that completes an epoch. TRAINED, and the line after it: trained blocks of the current epoch
# and of the next one, by the parity of the epoch. LOCKS: the first lock of a segment of weights.
CLAIMED, STOPPED, READY, GATE, TRAINED, LOCKS = LINE, 2 * LINE, 3 * LINE, 4 * LINE, 5 * LINE, 7 * LINE
SEGMENT = 64  # weights with a lock of their own
OWN, KNOWN = 0, 1  # a worker's intercept, and the one that it saw at its last merge
SQUARED = LINE // 2  # position of the squared norm of a worker's replica, beside its losses
# Sum of the steps of all workers, as a multiple of the distance to the optimum: at which a tier but the first, which is
# always due, is merged, since what all tiers overshoot adds up; and above which only a share of the changes is added.
DUE, CALM = 0.125, 2.0
# Merges of every tier in an epoch, at least. With fewer, losses and penalties of an epoch are those of old weights.
LEAST_MERGES = 4
LATEST = 0.2  # weight of the latest epoch in the mean squared norm of the weights


def new_control(replicated: int) -> NDArray[np.int64]:
    """Return the control array of a fit with this number of replicated weights."""
    return np.zeros(LOCKS + (replicated // SEGMENT + 1) * LINE, np.int64)


def train_part(
    indptr: Any, indices: Any, values: Any, rare_starts: Any, targets: Any, sample_weights: Any,
    blocks: Any, weights: Any, bias: Any, replicas: Any, seen: Any, losses: Any, control: Any, tiers: Any,
    eigenvalues: Any, first_blocks: Any, begin: Any, progress: Any, constants: Any, last_block: Any, worker: Any,
) -> None:  # fmt: skip
    """Train a model with one output as one of several workers, up to a block. Blocks are counted over all epochs.

    ``blocks`` has the first rows of the blocks, in the order of epochs of even and of odd numbers. Up to
    ``rare_starts[i]``, row i has replicated features; all are replicated if ``rare_starts`` is empty. ``bias`` is the
    intercept. Tier k has the weights from ``tiers[k]`` to ``tiers[k + 1]``, and the largest eigenvalue
    ``eigenvalues[k]``. ``seen`` holds the weights that each worker saw at its last merges. ``begin`` is a copy of
    ``progress`` at the start. Worker k begins at block ``first_blocks[k]``, in ascending order.
    """
    own, known, count = replicas[worker], seen[worker], targets.size
    block, per_epoch = np.int64(constants[BLOCK]), np.int64(blocks.shape[1])
    while load(control, CLAIMED) < first_blocks[worker] and load(control, STOPPED) == 0:
        nap()
    begun = np.int64(begin[EPOCHS]) * per_epoch + np.int64(begin[ROW]) // block
    l2, parameter = constants[ALPHA] * (1.0 - constants[L1_RATIO]), constants[PARAMETER]
    for u in range(np.uint64(tiers[tiers.size - 1])):
        own[u] = known[u] = weights[u]
    step, table, intercepts = begin[STEP], weights.reshape(weights.size, 1), np.empty(2)
    intercepts[OWN] = intercepts[KNOWN] = bias[0]
    workers = worker + 1  # that have joined so far, in their order
    waited, period, since = (
        np.int64(0),
        np.int64(1),
        np.zeros(tiers.size - 1),
    )  # rows since the last merge, of any tier and of each
    while load(control, STOPPED) == 0:
        claimed = fetch_add(control, CLAIMED, 1)
        if claimed >= last_block:
            break
        while workers < first_blocks.size and first_blocks[workers] <= claimed:
            workers += 1
        epoch = claimed // per_epoch
        if not await_order(control, epoch):
            break
        at = claimed - epoch * per_epoch
        first = np.int64(blocks[epoch % 2, at])
        size = min(block, count - at * block)
        t = begin[UPDATES] + (epoch - begun // per_epoch) * count + (at - begun % per_epoch) * block
        scale = begin[SCALE] * decay_between(constants, step, l2, begin[UPDATES], t)
        total, intercept = 0.0, intercepts[OWN]
        for i in range(np.uint64(first), np.uint64(first + size)):
            start, stop = span(indptr, i)
            middle = np.uint64(rare_starts[i]) if rare_starts.size else stop
            if i + np.uint64(2) < np.uint64(first + size):
                prefetch_row(indptr, indices, values, i + np.uint64(2))
            rate = step_size(constants, step, t)
            raw = dot(own, indices, values, start, middle)
            if middle < stop:
                raw += dot(weights, indices, values, middle, stop)
            target = np.float64(targets[i])
            cost, slope = loss(scale * np.float64(raw) + intercept, target, parameter)
            weight = row_weight(constants, sample_weights, i, target)
            total += cost + constants[INTERCEPT_GRADIENT] * intercept
            pull = rate * slope * weight
            scale *= 1.0 - rate * l2
            if pull != 0.0:
                change = weights.dtype.type(-pull / scale)
                add(own, indices, values, start, middle, change)
                if middle < stop:
                    add(weights, indices, values, middle, stop, change)
            intercept -= (pull + rate * constants[INTERCEPT_GRADIENT]) * constants[INTERCEPT_STEP]
            t += 1
            waited += 1
            if waited >= period:
                period = np.int64(1.0 / (rate * eigenvalues[0] * workers)) + 1
                intercepts[OWN] = intercept
                merge_due(
                    table, bias, own, known, intercepts, tiers, eigenvalues, since, waited, rate, control, worker,
                    workers, count, np.bool_(False),
                )  # fmt: skip
                waited, intercept = np.int64(0), intercepts[OWN]
        intercepts[OWN] = intercept
        losses[worker, epoch % 2 * LINE] += total
        if at >= per_epoch - first_blocks.size:
            losses[worker, SQUARED] = squared_norm(own, 0, tiers[tiers.size - 1])
        if fetch_add(control, TRAINED + epoch % 2 * LINE, 1) == per_epoch - 1:
            complete_epochs(
                blocks, weights, bias, losses, control, begin, progress, constants, count, tiers[tiers.size - 1]
            )
    rate = step_size(constants, step, progress[UPDATES])
    merge_due(
        table, bias, own, known, intercepts, tiers, eigenvalues, since, waited, rate, control, worker, workers, count,
        np.bool_(True),
    )  # fmt: skip


def await_order(control: Any, epoch: Any) -> bool:
    """Wait until the order of an epoch is known, while another worker completes the last epoch but one."""
    while load(control, READY) <= epoch:
        if load(control, STOPPED) != 0:
            return False
        nap()
    return True


def decay_between(constants: Any, step: Any, l2: Any, first: Any, last: Any) -> Any:
    """Return the product of ``1 - step size x l2`` over updates, the same for all workers: their common factor."""
    if constants[SCHEDULE] == OPTIMAL:
        begin, end = constants[T0] + first - 1.0, constants[T0] + last - 1.0
        return (begin / end) ** (l2 / constants[STEP_ALPHA])
    if constants[SCHEDULE] == CONSTANT:
        return (1.0 - step * l2) ** (last - first)
    power = 1.0 - constants[POWER]
    if abs(power) < 1e-9:
        return np.exp(-l2 * step * np.log((last + 1.0) / (first + 1.0)))
    return np.exp(-l2 * step / power * ((last + 1.0) ** power - (first + 1.0) ** power))


def merge_due(
    table: Any, bias: Any, own: Any, known: Any, intercepts: Any, tiers: Any, eigenvalues: Any, since: Any, waited: Any,
    rate: Any, control: Any, worker: Any, workers: Any, rows: Any, everything: Any,
) -> None:  # fmt: skip
    """Merge the tiers that are due, or everything; skip segments that are just being merged.

    ``since`` has the rows since the last merge of each tier, before the last ``waited`` ones. If a merge was left out,
    the changes of all workers together may overshoot, and only a share of them is added.
    """
    for k in range(tiers.size - 1):
        since[k] += waited
        together = since[k] * rate * workers * eigenvalues[k]
        if k > 0 and together < DUE and LEAST_MERGES * since[k] * workers < rows and not everything:
            continue
        share, low = min(1.0, CALM / max(together, CALM)), tiers[k] // SEGMENT
        count, missed = (tiers[k + 1] + SEGMENT - 1) // SEGMENT - low, False
        for number in range(count):
            at = low + (number + count * worker // workers) % count
            place = LOCKS + at * LINE
            if everything:
                lock(control, place)
            elif load(control, place) != 0 or not exchange_if(control, place, 0, 1):
                missed = True
                continue
            merge_segment(table, own, known, at * SEGMENT, min((at + 1) * SEGMENT, tiers[k + 1]), share)
            if at == 0:
                bias[0] += share * (intercepts[OWN] - intercepts[KNOWN])
                intercepts[OWN] = intercepts[KNOWN] = bias[0]
            unlock(control, place)
        if not missed:
            since[k] = 0


def merge_segment(table: Any, own: Any, known: Any, low: Any, high: Any, share: Any) -> None:
    """Add a share of this worker's changes to a segment of the shared weights, and take over the others' changes."""
    part = table.dtype.type(share)
    for u in range(low, high, LINE):
        prefetch_to_write(table, u, 0)
    for u in range(np.uint64(low), np.uint64(high)):
        merged = table[u, 0] + part * (own[u] - known[u])
        table[u, 0] = merged
        own[u] = merged
        known[u] = merged


def squared_norm(vector: Any, low: Any, high: Any) -> Any:
    """Return the squared norm of a part of a vector, as four sums."""
    s0 = s1 = s2 = s3 = 0.0
    u, last = np.uint64(low), np.uint64(high)
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    while u + four <= last:
        s0 += np.float64(vector[u]) * np.float64(vector[u])
        s1 += np.float64(vector[u + one]) * np.float64(vector[u + one])
        s2 += np.float64(vector[u + two]) * np.float64(vector[u + two])
        s3 += np.float64(vector[u + three]) * np.float64(vector[u + three])
        u += four
    while u < last:
        s0 += np.float64(vector[u]) * np.float64(vector[u])
        u += one
    return (s0 + s1) + (s2 + s3)


def mean_squared_norm(weights: Any, losses: Any, replicated: Any) -> Any:
    """Return the mean squared norm of the weights that workers compute losses with, those of the latest epoch's end."""
    total, count = 0.0, 0
    for other in range(losses.shape[0]):
        if losses[other, SQUARED] > 0:
            total += losses[other, SQUARED]
            count += 1
    total = total / count if count else squared_norm(weights, 0, replicated)
    return total + squared_norm(weights, replicated, weights.size)


def complete_epochs(
    blocks: Any, weights: Any, bias: Any, losses: Any, control: Any, begin: Any, progress: Any, constants: Any,
    count: Any, replicated: Any,
) -> None:  # fmt: skip
    """Complete the epochs of which all blocks are trained, in order, and shuffle blocks for the epoch after next."""
    per_epoch, l2 = np.int64(blocks.shape[1]), constants[ALPHA] * (1.0 - constants[L1_RATIO])
    lock(control, GATE)
    epoch = np.int64(progress[EPOCHS])
    while load(control, TRAINED + epoch % 2 * LINE) == per_epoch and load(control, STOPPED) == 0:
        store(control, TRAINED + epoch % 2 * LINE, 0)
        for other in range(losses.shape[0]):
            progress[LOSSES] += losses[other, epoch % 2 * LINE]
            losses[other, epoch % 2 * LINE] = 0.0
        t = begin[UPDATES] + (epoch + 1 - np.int64(begin[EPOCHS])) * count - begin[ROW]
        scale = begin[SCALE] * decay_between(constants, begin[STEP], l2, begin[UPDATES], t)
        squares = mean_squared_norm(weights, losses, replicated)
        if progress[SQUARES] > 0:
            # The norm depends on which changes have been merged just now. A mean over some epochs is less noisy.
            squares = LATEST * squares + (1.0 - LATEST) * progress[SQUARES] * (progress[SCALE] / scale) ** 2
        progress[SQUARES], progress[SCALE], progress[UPDATES], progress[INTERCEPT] = squares, scale, t, bias[0]
        progress[PENALTIES] = count * 0.5 * l2 * squares * scale * scale
        end_epoch(progress, constants, count)
        epoch += 1
        if progress[DONE] != RUNNING or progress[EPOCHS] >= constants[MAX_EPOCHS]:
            store(control, STOPPED, 1)
        else:
            following = blocks[(epoch + 1) % 2]
            for at in range(per_epoch):
                following[at] = blocks[epoch % 2, at]
            shuffle(following[: count // np.int64(constants[BLOCK])], np.uint32(constants[SEED]), 1)
            store(control, READY, epoch + 2)
    unlock(control, GATE)


def multiply_by_moments(
    indptr: Any, indices: Any, values: Any, row_weights: Any, tier_of: Any, vector: Any, first: Any, last: Any,
    image: Any,
) -> None:  # fmt: skip
    """Write the weighted second moments of the features of each tier, in rows ``first`` to ``last``, times a vector.

    Features beyond ``tier_of`` are left out.
    """
    features = np.uint64(tier_of.size)
    sums = np.empty(np.int64(tier_of[tier_of.size - 1]) + 1, np.float32)
    for u in range(features):
        image[u] = 0
    for i in range(first, last):
        start, stop = span(indptr, i)
        sums[:] = 0
        for j in range(start, stop):
            v = np.uint64(column(indices, j, start))
            if v < features:
                sums[tier_of[v]] += vector[v] * np.float32(value(values, j))
        for j in range(start, stop):
            v = np.uint64(column(indices, j, start))
            if v < features:
                image[v] += sums[tier_of[v]] * np.float32(row_weights[i]) * np.float32(value(values, j))
