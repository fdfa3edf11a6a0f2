"""Whole fits of linear models by a single worker: all epochs of a fit in one call of compiled code.

The loops are templates like those in :mod:`hogwild.kernels.linear`, and bind the names ``loss``, ``column``, ``value``
and ``pace``. Steps, penalties, averages and the rule for stopping are those of scikit-learn's SGD, and so is the order
of the rows, unless blocks of rows stay together. Sums are not taken in the same order, so that the last digits differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.row_layouts import span
from hogwild.prefetch import prefetch

# mypy: disable-error-code="call-arg, unreachable, name-defined"
# ruff: noqa: F821

# Numbers that a fit carries from call to call. SCALE: common factor of all weights. OWED: L1 penalty accumulated so
# far. SQUARES: squared norm of the weights, without the common factor. UPDATES: updates so far, those of earlier fits
# included. STEP: step size of all schedules but "optimal". BEST: lowest objective. STALLED: epochs without a lower
# one. EPOCHS: complete epochs. ROW: rows visited in the current epoch.
# LOSSES, PENALTIES: sums over them. MEAN_LOSS, OBJECTIVE: means of the last epoch. INTERCEPTS, AVERAGED: sum of the
# averaged intercepts, and their number. SCALES: sum of the common factors since the sums of all weights were complete.
# LARGEST: largest of these factors. DONE: one of the states below.
(
    INTERCEPT, SCALE, OWED, SQUARES, UPDATES, STEP, BEST, STALLED, EPOCHS, ROW, LOSSES, PENALTIES, MEAN_LOSS,
    OBJECTIVE, INTERCEPTS, AVERAGED, SCALES, LARGEST, DONE, PROGRESS,
) = range(20)  # fmt: skip
# Constants of a fit. SCHEDULE: one of the schedules below. STEP_ALPHA, T0: parameters of "optimal". POWER: exponent of
# "invscaling". ALPHA, L1_RATIO: penalty. INTERCEPT_STEP: factor of the intercept's step size. INTERCEPT_GRADIENT:
# derivative of the objective by the intercept besides that of the loss. AVERAGE_FROM: first averaged update, 0 for
# none. MONITOR: what convergence is judged by, as below. TOLERANCE, PATIENCE: least improvement, and epochs without one
# after which the fit has converged. PARAMETER: width of the loss. SEED: seed of the shuffles, -1 for none.
# BLOCK: number of consecutive rows that a shuffle keeps together. NEGATIVE_WEIGHT, POSITIVE_WEIGHT: weights of the two
# classes. MAX_EPOCHS: epochs at which a call ends.
(
    SCHEDULE, STEP_ALPHA, T0, POWER, ALPHA, L1_RATIO, INTERCEPT_STEP, INTERCEPT_GRADIENT, AVERAGE_FROM, MONITOR,
    TOLERANCE, PATIENCE, PARAMETER, SEED, BLOCK, NEGATIVE_WEIGHT, POSITIVE_WEIGHT, MAX_EPOCHS, CONSTANTS,
) = range(19)  # fmt: skip
CONSTANT, OPTIMAL, INVERSE_SCALING, ADAPTIVE = range(4)
NOTHING, LOSS, PENALISED_LOSS = range(3)
RUNNING, CONVERGED, OVERFLOWED = range(3)
# Columns of what is known of a weight besides its value: L1 penalty that it has paid, sum of its averaged iterates, and
# sum of the common factors up to which that sum is complete.
PAID, SUM, SINCE = 0, 1, 2
# Values of the common factor below which it is multiplied into the weights, in double and in single precision.
SMALLEST, SMALLEST_SINGLE = 1e-9, 1e-6
# Smallest ratio of the current factor to the largest one of a sum; below it, the sum would lose the small factors.
CLOSE = 1e-3
LEAST_STEP = 1e-6  # step size of "adaptive" at which the fit stops
CLASSES_AT_A_TIME = 8
LINE = np.uint64(16)  # numbers between two prefetches: those of a cache line


def train_output(
    indptr: Any, indices: Any, values: Any, targets: Any, sample_weights: Any, squared_norms: Any, order: Any,
    weights: Any, columns: Any, progress: Any, constants: Any, updates: int,
) -> None:  # fmt: skip
    """Train a model with one output for a number of updates, or until it has converged.

    L2 is a common factor of all weights, so that a step costs no more than its row (Bottou 2010). L1 accumulates as a
    debt that is the same for all weights. A weight pays its debt when a row touches it, down to zero at most (Tsuruoka
    et al. 2009). A weight is added to the sum of its iterates when a row touches it, because until then only the
    common factor has changed.

    ``order`` holds the rows of the current epoch, and is shuffled in place. ``squared_norms`` of the rows are used if
    convergence is judged by the penalised loss. ``columns`` has what is known of each weight besides its value, and no
    rows if that is nothing.
    """
    count, scale, intercept = order.size, progress[SCALE], progress[INTERCEPT]
    alpha, share1, parameter = constants[ALPHA], constants[L1_RATIO], constants[PARAMETER]
    l2, l1 = alpha * (1.0 - share1), alpha * share1
    monitored = constants[MONITOR] == PENALISED_LOSS
    left = updates
    while left > 0 and progress[DONE] == RUNNING and progress[EPOCHS] < constants[MAX_EPOCHS]:
        row = np.int64(progress[ROW])
        if row == 0 and constants[SEED] >= 0:
            shuffle(order, np.uint32(constants[SEED]), np.int64(constants[BLOCK]))
        stop_row = min(count, row + left)
        losses, penalties, t = progress[LOSSES], progress[PENALTIES], progress[UPDATES]
        squares, owed = progress[SQUARES], progress[OWED]
        for k in range(row, stop_row):
            i = order[k]
            start, stop = span(indptr, i)
            if k + 2 < count:
                prefetch_row(indptr, indices, values, order[k + 2])
            rate = step_size(constants, progress[STEP], t)
            raw = dot(weights, indices, values, start, stop)
            target = np.float64(targets[i])
            cost, slope = loss(scale * np.float64(raw) + intercept, target, parameter)
            weight = row_weight(constants, sample_weights, i, target)
            losses += cost + constants[INTERCEPT_GRADIENT] * intercept
            pull = np.float64(pace(rate, cost, values, start, stop)) * slope * weight
            if monitored:
                penalties += 0.5 * l2 * squares * (scale * scale)
            averaging = 0 < constants[AVERAGE_FROM] <= t + 1
            if l2 > 0:
                scale *= max(0.0, 1.0 - rate * l2)
                if averaging and scale < CLOSE * progress[LARGEST]:
                    complete_sums(weights, columns, progress[SCALES])
                    progress[SCALES], progress[LARGEST] = 0.0, scale
                if scale < (SMALLEST if weights.itemsize == 8 else SMALLEST_SINGLE):
                    if columns.size:
                        complete_sums(weights, columns, progress[SCALES])
                    fold(weights, scale)
                    squares *= scale * scale
                    scale = 1.0
                    progress[SCALES], progress[LARGEST] = 0.0, 1.0
            if averaging:
                for j in range(start, stop):
                    complete_sum(weights, columns, column(indices, j, start), progress[SCALES])
            if pull != 0.0:
                change = pull / scale
                add(weights, indices, values, start, stop, weights.dtype.type(-change))
                if monitored:
                    squares += change * (change * squared_norms[i] - 2.0 * np.float64(raw))
            intercept -= (pull + rate * constants[INTERCEPT_GRADIENT]) * constants[INTERCEPT_STEP]
            if l1 > 0:
                owed += rate * l1
                for j in range(start, stop):
                    pay(weights, columns, column(indices, j, start), owed, scale)
            if averaging:
                progress[SCALES] += scale
                progress[INTERCEPTS] += intercept
                progress[AVERAGED] += 1
            t += 1
        left -= stop_row - row
        progress[SCALE], progress[INTERCEPT], progress[OWED], progress[UPDATES] = scale, intercept, owed, t
        progress[SQUARES], progress[LOSSES], progress[PENALTIES], progress[ROW] = squares, losses, penalties, stop_row
        if stop_row == count:
            if monitored:  # Sums of small changes lose digits, and do not contain L1.
                progress[SQUARES], absolutes = weight_norms(weights)
                if l1 > 0:
                    penalty = 0.5 * l2 * progress[SQUARES] * (scale * scale) + l1 * absolutes * scale
                    progress[PENALTIES] = count * penalty
            end_epoch(progress, constants, count)
    if not monitored and not np.isfinite(weight_norms(weights)[0]):
        progress[DONE] = OVERFLOWED


def end_epoch(progress: Any, constants: Any, count: int) -> None:
    """Count an epoch, and find out whether the fit has converged or overflowed."""
    progress[EPOCHS] += 1
    progress[MEAN_LOSS] = progress[LOSSES] / count
    progress[OBJECTIVE] = (progress[LOSSES] + progress[PENALTIES]) / count
    progress[ROW] = progress[LOSSES] = progress[PENALTIES] = 0.0
    finite = np.isfinite(progress[INTERCEPT]) and np.isfinite(progress[SQUARES]) and np.isfinite(progress[MEAN_LOSS])
    if not finite:
        progress[DONE] = OVERFLOWED
    elif constants[MONITOR] != NOTHING:
        check_convergence(progress, constants, progress[OBJECTIVE])


def check_convergence(progress: Any, constants: Any, objective: Any) -> None:
    """Find out whether the fit has converged: whether ``objective`` has not improved for too many epochs."""
    progress[STALLED] = progress[STALLED] + 1 if objective > progress[BEST] - constants[TOLERANCE] else 0
    progress[BEST] = min(progress[BEST], objective)
    if progress[STALLED] >= constants[PATIENCE]:
        if constants[SCHEDULE] == ADAPTIVE and progress[STEP] > LEAST_STEP:
            progress[STEP] /= 5
            progress[STALLED] = 0
        else:
            progress[DONE] = CONVERGED


def step_size(constants: Any, step: Any, t: Any) -> Any:
    """Return the step size of update number ``t``, from zero."""
    if constants[SCHEDULE] == OPTIMAL:
        return 1.0 / (constants[STEP_ALPHA] * (constants[T0] + t))
    if constants[SCHEDULE] == INVERSE_SCALING:
        return step / (t + 1.0) ** constants[POWER]
    return step


def row_weight(constants: Any, sample_weights: Any, i: Any, target: Any) -> Any:
    """Return the weight of row ``i``: that of its class times its own."""
    weight = constants[POSITIVE_WEIGHT] if target > 0 else constants[NEGATIVE_WEIGHT]
    return weight * np.float64(sample_weights[i]) if sample_weights.size else weight


def shuffle(order: Any, seed: Any, block: Any) -> None:
    """Shuffle blocks of elements in place by Fisher and Yates, with the xorshift generator of Marsaglia (2003).

    Elements after the last whole block stay there.
    """
    state, count = seed if seed != 0 else np.uint32(1), order.size // block
    for at in range(count - 1):
        state ^= np.uint32(state << np.uint32(13))
        state ^= np.uint32(state >> np.uint32(17))
        state ^= np.uint32(state << np.uint32(5))
        chosen = at + np.int64((state & np.uint32(0x7FFFFFFF)) % np.uint32(count - at))
        for k in range(block):
            one, other = at * block + k, chosen * block + k
            order[one], order[other] = order[other], order[one]


def prefetch_row(indptr: Any, indices: Any, values: Any, i: Any) -> None:
    """Prefetch a row, which lies anywhere in memory."""
    start, stop = span(indptr, i)
    for j in range(start, stop, LINE):
        prefetch(values, j)
        if indices.size:
            prefetch(indices, j)


def dot(weights: Any, indices: Any, values: Any, start: Any, stop: Any) -> Any:
    """Return the score of a row without the common factor."""
    z = weights.dtype.type(0)
    for j in range(start, stop):
        z += weights[column(indices, j, start)] * value(values, j)
    return z


def add(weights: Any, indices: Any, values: Any, start: Any, stop: Any, change: Any) -> None:
    """Add ``change`` times the values of a row to its weights."""
    for j in range(start, stop):
        weights[column(indices, j, start)] += change * value(values, j)


def squared_row_norms(indptr: Any, values: Any, squared_norms: Any) -> None:
    """Write the squared norms of all rows."""
    for i in range(squared_norms.size):
        start, stop = span(indptr, i)
        total = 0.0
        for j in range(start, stop):
            total += np.float64(value(values, j)) * np.float64(value(values, j))
        squared_norms[i] = total


def pay(weights: Any, columns: Any, u: Any, owed: Any, scale: Any) -> None:
    """Subtract the unpaid L1 debt from a weight, down to zero at most."""
    before, paid = np.float64(weights[u]), columns[u, PAID]
    after = before
    if before > 0:
        after = max(0.0, before - (owed + paid) / scale)
    elif before < 0:
        after = min(0.0, before + (owed - paid) / scale)
    weights[u] = after
    columns[u, PAID] = paid + scale * (after - before)


def complete_sum(weights: Any, columns: Any, u: Any, scales: Any) -> None:
    """Add a weight's iterates since it was last touched to its sum."""
    columns[u, SUM] += weights[u] * (scales - columns[u, SINCE])
    columns[u, SINCE] = scales


def complete_sums(weights: Any, columns: Any, scales: Any) -> None:
    """Bring the sums of all weights up to date, and restart the sum of factors."""
    for u in range(columns.shape[0]):
        complete_sum(weights, columns, u, scales)
        columns[u, SINCE] = 0.0


def fold(weights: Any, scale: Any) -> None:
    """Multiply the common factor into the weights."""
    for u in range(weights.size):
        weights[u] *= weights.dtype.type(scale)


def weight_norms(weights: Any) -> Any:
    """Return the sums of the squares and of the absolute values of all weights."""
    squares = absolutes = 0.0
    for u in range(weights.size):
        squares += np.float64(weights[u]) * np.float64(weights[u])
        absolutes += abs(np.float64(weights[u]))
    return squares, absolutes
