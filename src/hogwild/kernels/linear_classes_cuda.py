"""GPU kernels of linear models with several outputs: a group of lanes for each row, and a lane for each class.

The coordinates of a feature for all classes lie side by side, so that the lanes of a group read them together. Steps,
additions and damping are those of :mod:`hogwild.kernels.linear_cuda`.
"""

# mypy: disable-error-code="name-defined, attr-defined, no-untyped-call, no-any-return, arg-type, assignment"
# ruff: noqa: F821

from __future__ import annotations

import functools
from math import exp, log
from typing import Any

import numpy as np

from hogwild.jit import Function, bind
from hogwild.kernels.cuda_jit import cuda
from hogwild.kernels.cuda_lanes import own_sum
from hogwild.kernels.linear_cuda import FULL

LEAST = np.float32(-3.0e38)


def descend(
    indptr: Any, indices: Any, values: Any, labels: Any, weights: Any, order: Any, first: Any, count: Any, rates: Any,
    rows_a_rate: Any, table: Any, bias: Any, classes: Any, l1: Any, l2: Any, class_weights: Any, parameter: Any,
    constants: Any, bias_curvature: Any, bias_rate: Any, tilt: Any, sums: Any,
) -> None:  # fmt: skip
    """Descend along the rows ``order[first : first + count]``, and add their losses to ``sums[0]``.

    The coordinate of a feature ``u`` for a class ``k`` is row ``u * classes + k`` of ``table``.
    """
    lane, group, groups = cuda.grid(1) % LANES, cuda.grid(1) // LANES, cuda.gridsize(1) // LANES
    scores, slopes = cuda.local.array(PER_LANE, np.float32), cuda.local.array(PER_LANE, np.float32)
    copy, changes = cuda.local.array((1, WIDTH), np.float32), cuda.local.array(WIDTH, np.float32)
    in_flight, total = np.float32(min(groups, count)), 0.0
    # All lanes of a warp make the same number of rounds, because they add up the terms of the loss together.
    for turn in range((count + groups - 1) // groups):
        k = turn * groups + group
        i, start, end = 0, 0, 0
        if k < count:
            i = order[first + k]
            start, end = indptr[i], indptr[i + 1]
        add_up(indices, values, start, end, table, bias, classes, lane, scores)
        y = np.int64(labels[i])
        cost = slopes_of(scores, y, classes, lane, parameter, class_weights, slopes)
        if k < count:
            weight, rate = weight_of(weights, i), rates[k // rows_a_rate]
            total += cost * weight
            for p in range(PER_LANE):
                own = p * LANES + lane
                g = np.float32(slopes[p] * weight)
                if own < classes and not skip(g):
                    for j in range(start, end):
                        u = np.int64(column(indices, j, start)) * classes + own
                        load(table, u, copy, 0)
                        move(copy, 0, g * value(values, j), rate, l1, l2, constants, in_flight, changes)
                        add(table, u, changes)
                    if INTERCEPT:
                        load(bias, np.int64(own), copy, 0)
                        for c in range(WIDTH):
                            changes[c] = copy[0, c]
                        step(copy, 0, g + tilt, rate * bias_rate, np.float32(0), np.float32(0), constants)
                        pull = abs(g + tilt)
                        part = damping(copy[0, 0] - changes[0], pull, in_flight * bias_curvature, in_flight)
                        for c in range(WIDTH):
                            changes[c] = (copy[0, c] - changes[c]) * (FULL if WHOLE[c] else part)
                        add(bias, np.int64(own), changes)
    if total != 0:
        cuda.atomic.add(sums, 0, total)


def add_up(
    indices: Any, values: Any, start: Any, end: Any, table: Any, bias: Any, classes: Any, lane: Any, scores: Any
) -> None:
    """Write the scores of a row for the classes of a lane."""
    for p in range(PER_LANE):
        own = p * LANES + lane
        scores[p] = bias[own, 0] if own < classes else LEAST
    for j in range(start, end):
        u, x = np.int64(column(indices, j, start)) * classes, value(values, j)
        for p in range(PER_LANE):
            own = p * LANES + lane
            if own < classes:
                scores[p] += table[u + own, 0] * x


def slopes_against_rest(
    scores: Any, y: Any, classes: Any, lane: Any, parameter: Any, class_weights: Any, slopes: Any
) -> Any:
    """Write the derivatives of a two-class loss of each class against all others; return the lane's part of the loss.

    The weight of a class applies where it is the positive class, as in :func:`hogwild.losses.loss.one_vs_rest`.
    """
    total = 0.0
    for p in range(PER_LANE):
        own = p * LANES + lane
        if own < classes:
            cost, slope = loss(float(scores[p]), 1.0 if own == y else -1.0, parameter)
            weight = class_weights[own] if own == y else 1.0
            slopes[p] = slope * weight
            total += cost * weight
    return total


def slopes_of_softmax(
    scores: Any, y: Any, classes: Any, lane: Any, parameter: Any, class_weights: Any, slopes: Any
) -> Any:
    """Write the derivatives of -log of the probability of the label's class; return the lane's part of the loss."""
    largest = LEAST
    for p in range(PER_LANE):
        largest = max(largest, scores[p])
    largest = largest_of_lanes(largest)
    total = np.float32(0)
    for p in range(PER_LANE):
        own = p * LANES + lane
        slopes[p] = np.float32(exp(scores[p] - largest)) if own < classes else np.float32(0)
        total += slopes[p]
    total = sum_of_lanes(total)
    weight, cost = class_weights[y], 0.0
    for p in range(PER_LANE):
        own = p * LANES + lane
        slopes[p] *= np.float32(weight) / total
        if own == y:
            slopes[p] -= np.float32(weight)
            cost = weight * (log(float(total)) + float(largest - scores[p]))
    return cost


def evaluate(
    indptr: Any, indices: Any, values: Any, labels: Any, weights: Any, order: Any, count: Any, table: Any, bias: Any,
    classes: Any, class_weights: Any, parameter: Any, sums: Any,
) -> None:  # fmt: skip
    """Add up loss, weight, hits, labels, squared labels and rows."""
    lane, group, groups = cuda.grid(1) % LANES, cuda.grid(1) // LANES, cuda.gridsize(1) // LANES
    scores, slopes = cuda.local.array(PER_LANE, np.float32), cuda.local.array(PER_LANE, np.float32)
    lost, weighed, hits, labelled, squared, rows = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for turn in range((count + groups - 1) // groups):
        k = turn * groups + group
        i, start, end = 0, 0, 0
        if k < count:
            i = order[k]
            start, end = indptr[i], indptr[i + 1]
        add_up(indices, values, start, end, table, bias, classes, lane, scores)
        y = np.int64(labels[i])
        cost = slopes_of(scores, y, classes, lane, parameter, class_weights, slopes)
        best, at = LEAST, np.float32(0)
        for p in range(PER_LANE):
            if scores[p] > best:
                best, at = scores[p], np.float32(p * LANES + lane)
        largest = largest_of_lanes(best)
        # The first of the largest scores: the smallest number of a class is the largest of the negative ones.
        at = -largest_of_lanes(-at if best == largest else LEAST)
        if k < count:
            weight = float(weight_of(weights, i))
            lost += cost * weight
            if lane == 0:
                weighed += weight
                hits += weight if at == np.float32(y) else 0.0
                labelled += weight * float(y)
                squared += weight * float(y) * float(y)
                rows += 1.0
    if lost != 0:
        cuda.atomic.add(sums, 0, lost)
    if rows > 0:
        cuda.atomic.add(sums, 1, weighed)
        cuda.atomic.add(sums, 2, hits)
        cuda.atomic.add(sums, 3, labelled)
        cuda.atomic.add(sums, 4, squared)
        cuda.atomic.add(sums, 5, rows)


def shuffled_largest(z: Any) -> Any:
    """Return the largest number of the lanes of a group, in each of them."""
    offset = LANES // 2
    while offset > 0:
        z = max(z, cuda.shfl_xor_sync(0xFFFFFFFF, z, offset))
        offset //= 2
    return z


@functools.cache
def lane_largest(lanes: int) -> Function:
    """Return the function that finds the largest number of the lanes of a group."""
    return own_sum if lanes == 1 else bind(shuffled_largest, LANES=lanes)
