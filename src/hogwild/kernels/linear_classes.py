"""Whole fits of linear classifiers with several classes by a single worker: one pass over a row for eight classes.

Each class is trained against the rest, with a common factor of its weights and its own rule for stopping, as by
:mod:`hogwild.kernels.linear_epochs`. The weights of a feature for eight classes lie side by side, as one vector.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.linear_epochs import (
    ALPHA,
    BLOCK,
    DONE,
    EPOCHS,
    INTERCEPT,
    INTERCEPT_STEP,
    LOSSES,
    MAX_EPOCHS,
    MONITOR,
    OPTIMAL,
    PARAMETER,
    PENALISED_LOSS,
    PENALTIES,
    ROW,
    RUNNING,
    SCALE,
    SCHEDULE,
    SEED,
    SMALLEST,
    SMALLEST_SINGLE,
    SQUARES,
    STEP,
    UPDATES,
    end_epoch,
    prefetch_row,
    shuffle,
    step_size,
)
from hogwild.kernels.row_layouts import span
from hogwild.kernels.simd import plus, put, take, zeros_like

# mypy: disable-error-code="call-arg, unreachable, var-annotated, name-defined"
# ruff: noqa: F821


def train_classes(
    indptr: Any, indices: Any, values: Any, targets: Any, sample_weights: Any, squared_norms: Any, order: Any,
    weights: Any, class_weights: Any, scores: Any, changes: Any, progress: Any, constants: Any, updates: int,
) -> None:  # fmt: skip
    """Train up to eight classes for a number of updates, or until all have converged.

    ``targets`` has the number of each row's class, which may be none of these. ``weights`` has a row for each feature,
    and a column for each of eight classes. ``scores`` and ``changes`` are one such row. ``progress`` has a row for each
    class.
    """
    count, classes, alpha = order.size, class_weights.size, constants[ALPHA]
    monitored = constants[MONITOR] == PENALISED_LOSS
    smallest = SMALLEST if weights.itemsize == 8 else SMALLEST_SINGLE
    left, row, epochs = updates, int(progress[0, ROW]), progress[:, EPOCHS].max()
    while left > 0 and is_any_running(progress, classes) and epochs < constants[MAX_EPOCHS]:
        if row == 0 and constants[SEED] >= 0:
            shuffle(order, np.uint32(constants[SEED]), np.int64(constants[BLOCK]))
        stop_row = min(count, row + left)
        t = progress[0, UPDATES]
        for k in range(row, stop_row):
            i = order[k]
            start, stop = span(indptr, i)
            if k + 2 < count:
                prefetch_row(indptr, indices, values, order[k + 2])
            score(weights, indices, values, start, stop, scores)
            rate = step_size(constants, 1.0, t)
            target, weight = np.int64(targets[i]), sample_weights[i] if sample_weights.size else 1.0
            norm, any_change = squared_norms[i] if monitored else 0.0, False
            for c in range(classes):
                changes[0, c] = 0
                if progress[c, DONE] != RUNNING:
                    continue
                scale, raw = progress[c, SCALE], np.float64(scores[0, c])
                own = rate if constants[SCHEDULE] == OPTIMAL else rate * progress[c, STEP]
                y = 1.0 if c == target else -1.0
                cost, slope = loss(scale * raw + progress[c, INTERCEPT], y, constants[PARAMETER])
                progress[c, LOSSES] += cost
                pull = own * slope * weight * (class_weights[c] if c == target else 1.0)
                if monitored:
                    progress[c, PENALTIES] += 0.5 * alpha * progress[c, SQUARES] * (scale * scale)
                if alpha > 0:
                    scale *= max(0.0, 1.0 - own * alpha)
                    if scale < smallest:
                        fold(weights, c, scale)
                        raw *= scale
                        progress[c, SQUARES] *= scale * scale
                        scale = 1.0
                    progress[c, SCALE] = scale
                if pull != 0.0:
                    change = pull / scale
                    changes[0, c], any_change = -change, True
                    progress[c, SQUARES] += change * (change * norm - 2.0 * raw)
                progress[c, INTERCEPT] -= pull * constants[INTERCEPT_STEP]
            if any_change:
                add(weights, indices, values, start, stop, changes)
            t += 1
        left -= stop_row - row
        row = stop_row
        if row == count:
            row = 0
            epochs += 1
            for c in range(classes):
                if progress[c, DONE] == RUNNING:
                    if monitored:
                        progress[c, SQUARES] = squared_norm_of(weights, c)
                    end_epoch(progress[c], constants, count)
        for c in range(classes):
            progress[c, ROW], progress[c, UPDATES] = row, t


def is_any_running(progress: Any, classes: int) -> bool:
    """Return whether a class has not converged."""
    count = 0
    for c in range(classes):
        count += progress[c, DONE] == RUNNING
    return count > 0


def score(weights: Any, indices: Any, values: Any, start: Any, stop: Any, scores: Any) -> None:
    """Write the scores of a row for eight classes, without their common factors."""
    sums, more = zeros_like(weights, 8), zeros_like(weights, 8)
    one, two = np.uint64(1), np.uint64(2)
    j = start
    while j + two <= stop:
        sums = plus(sums, value(values, j), take(weights, column(indices, j, start), 0, 8))
        more = plus(more, value(values, j + one), take(weights, column(indices, j + one, start), 0, 8))
        j += two
    if j < stop:
        sums = plus(sums, value(values, j), take(weights, column(indices, j, start), 0, 8))
    put(scores, 0, 0, plus(sums, 1.0, more))


def add(weights: Any, indices: Any, values: Any, start: Any, stop: Any, changes: Any) -> None:
    """Add the changes of eight classes times the values of a row to its weights."""
    change = take(changes, 0, 0, 8)
    for j in range(start, stop):
        u = column(indices, j, start)
        put(weights, u, 0, plus(take(weights, u, 0, 8), value(values, j), change))


def squared_norm_of(weights: Any, c: int) -> float:
    """Return the squared norm of the weights of a class."""
    norm = 0.0
    for u in range(weights.shape[0]):
        norm += float(weights[u, c]) * float(weights[u, c])
    return norm


def fold(weights: Any, c: int, scale: float) -> None:
    """Multiply the common factor of a class into its weights."""
    for u in range(weights.shape[0]):
        weights[u, c] *= weights.dtype.type(scale)
