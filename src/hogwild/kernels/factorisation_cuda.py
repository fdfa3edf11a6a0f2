"""GPU kernels of factorisation machines: a group of lanes for each row, and atomic additions to shared parameters.

As in :mod:`hogwild.kernels.linear_cuda`, a lane copies a coordinate, takes the rule's step on the copy, and adds the
change. The products of features are the parts ``score_pairs`` and ``move_pairs``, which are in
:mod:`hogwild.kernels.fm_cuda` and :mod:`hogwild.kernels.ffm_cuda`. Tables are flat, so that a lane can load any vector.

A row moves hundreds of coordinates, and thousands of rows are in flight. :func:`change` limits how far all of them
together move a score. The names that are not defined here are bound by :func:`hogwild.kernels.cuda_jit.kernel`.
"""

# mypy: disable-error-code="name-defined, attr-defined, no-untyped-call, no-any-return, arg-type, assignment"
# ruff: noqa: F821

from __future__ import annotations

import functools
from math import sqrt
from typing import Any

import numpy as np

from hogwild.jit import Function, bind
from hogwild.kernels.cuda_jit import cuda
from hogwild.kernels.linear_cuda import all_rows, some_rows
from hogwild.rules.rule import Rule

NONE, FULL = np.float32(0), np.float32(1)
FORGOTTEN = np.float32(0.125)  # share of the crowd of earlier rows that a row with a smaller crowd replaces


def descend(
    indptr: Any, indices: Any, values: Any, labels: Any, weights: Any, order: Any, first: Any, count: Any, rates: Any,
    rows_a_rate: Any, table: Any, bias: Any, factors: Any, fields: Any, l2: Any, l2_factors: Any, class_weights: Any,
    parameter: Any, constants: Any, curvature: Any, sums: Any,
) -> None:  # fmt: skip
    """Descend along the rows ``order[first : first + count]``, and add their losses to ``sums[0]``.

    A row of ``table`` has the rule's numbers of a weight, n / d, where d of n rows have the feature, and its mean
    squared value in these rows. ``curvature`` is the largest one of a row's loss by its score.
    """
    lane, group, groups = cuda.grid(1) % LANES, cuda.grid(1) // LANES, cuda.gridsize(1) // LANES
    # The weights of the row's first non-zeros, and one more of the others.
    kept = cuda.local.array((ROOM, WIDTH), np.float32)
    kept_columns, kept_values = cuda.local.array(KEPT, np.int32), cuda.local.array(KEPT, np.float32)
    # What the part that scores products leaves for the part that steps their factors.
    near = cuda.local.array((NEAR_ROOM, NEAR_WIDTH), np.float32)
    near_columns, near_values = cuda.local.array(NEAR_ROOM, np.int32), cuda.local.array(NEAR_ROOM, np.float32)
    totals, spread = cuda.local.array(EACH, np.float32), cuda.local.array(EACH, np.float32)
    coordinate = cuda.local.array((1, NUMBERS), np.float32)
    # What pairs need of the row's non-zeros, side by side for the groups of a block.
    row_columns = cuda.shared.array((2, SHELVES), np.int32)
    row_numbers = cuda.shared.array((3, SHELVES), np.float32)
    place = cuda.threadIdx.x // LANES * SHELF
    own, seen = cuda.local.array((1, NUMBERS), np.float32), cuda.local.array(NUMBERS, np.float32)
    in_flight, total, crowd = np.float32(min(groups, count)), 0.0, NONE
    # Additions of all rows to one address would take longer than the rest, so a group adds up its changes of a few.
    rounds, pulled = (count + groups - 1) // groups, NONE
    turns = min(max(rounds // OFTEN, 1), TURNS)
    for c in range(NUMBERS):
        seen[c] = own[0, c] = bias[c]
    for q in range(EACH):
        spread[q] = NONE
    # All lanes of a warp make the same number of rounds, because they add up scores together.
    for turn in range(rounds):
        k = turn * groups + group
        i, start, end, z = 0, 0, 0, NONE
        if k < count:
            i = order[first + k]
            start, end = indptr[i], indptr[i + 1]
        scale = length(values, start, end, lane)
        for n in range(KEPT):
            j = start + lane + n * LANES
            kept_columns[n] = np.int32(-1)
            if j < end:
                kept_columns[n], kept_values[n] = np.int32(column(indices, j, start)), value(values, j) * scale
        z += score_pairs(
            factors, fields, indices, values, start, end, scale, lane, near, near_columns, near_values, totals, table,
            in_flight, row_columns, row_numbers, place,
        )  # fmt: skip
        for n in range(KEPT):
            if kept_columns[n] >= 0:
                load(table, np.int64(kept_columns[n]), kept, n)
                z += kept[n, 0] * kept_values[n]
        for j in range(start + lane + KEPT * LANES, end, LANES):
            z += table[np.int64(column(indices, j, start)) * WIDTH] * value(values, j) * scale
        z = sum_of_lanes(z)
        coordinates = entries(np.float32(end - start))
        crowd = min(crowd, coordinates) if crowd > 0 else coordinates
        limit = max(crowd * EASE, FULL)
        met = NONE
        if k < count:
            y = labels[i]
            cost, slope = loss(float(z + bias[0]), float(y), parameter)
            weight = class_weights[1 if y > 0 else 0] * weight_of(weights, i)
            g, rate = np.float32(slope * weight), rates[k // rows_a_rate]
            if lane == 0:
                total += cost * weight
            if not skip(g):
                met += move_pairs(
                    factors, fields, indices, values, start, end, scale, lane, near, near_columns, near_values, totals,
                    spread, table, g, rate, l2_factors, constants, in_flight, curvature, coordinates, limit, coordinate,
                    row_columns, row_numbers, place,
                )  # fmt: skip
                for n in range(KEPT):
                    if kept_columns[n] >= 0:
                        share = kept[n, NUMBERS]
                        met += change(
                            kept, n, 0, kept_values[n], kept[n, NUMBERS + 1], g, l2 * share, rate, constants,
                            in_flight * presence(share), curvature, coordinates, limit, coordinate,
                        )  # fmt: skip
                        add(table, np.int64(kept_columns[n]), kept, n)
                for j in range(start + lane + KEPT * LANES, end, LANES):
                    u = np.int64(column(indices, j, start))
                    load(table, u, kept, KEPT)
                    share = kept[KEPT, NUMBERS]
                    met += change(
                        kept, KEPT, 0, value(values, j) * scale, kept[KEPT, NUMBERS + 1], g, l2 * share, rate,
                        constants, in_flight * presence(share), curvature, coordinates, limit, coordinate,
                    )  # fmt: skip
                    add(table, u, kept, KEPT)
                if INTERCEPT and lane == 0:
                    step(own, 0, g, rate, NONE, NONE, constants)
                    pulled += abs(g)
        met = sum_of_lanes(met)
        if met > 0:
            crowd = met if met > crowd else crowd + FORGOTTEN * (met - crowd)
        if INTERCEPT and lane == 0 and pulled > 0 and (turn % turns == turns - 1 or turn == rounds - 1):
            many = in_flight * np.float32(turns)
            part = damping(own[0, 0] - seen[0], pulled, many * curvature, many)
            for c in range(NUMBERS):
                cuda.atomic.add(bias, c, (own[0, c] - seen[c]) * (FULL if WHOLE[c] else part))
            for c in range(NUMBERS):
                seen[c] = own[0, c] = bias[c]
            pulled = NONE
    if lane == 0 and total != 0:
        cuda.atomic.add(sums, 0, total)


def change(
    rows: Any, n: Any, at: Any, slope: Any, square: Any, g: Any, penalty: Any, rate: Any, constants: Any, many: Any,
    curvature: Any, coordinates: Any, limit: Any, coordinate: Any,
) -> Any:  # fmt: skip
    """Take the rule's step on the coordinate at ``rows[n, at]``, and replace its numbers by the changes that count.

    ``slope`` is the derivative of the score by the coordinate, and ``square`` its mean square in rows before this one.
    ``many`` rows in flight change the coordinate. If all of them move it as far as this one, they close a part of the
    distance to the optimum along it. The parts of all coordinates of a row should add up to about 1. So each may be at
    most 1 / ``limit``, which follows from the number of coordinates whose part is not negligible. The function returns
    the coordinate's share in that number. What limits a change must not depend on the row's own derivatives: rows with
    large ones would count less than others, and the optimum would be another one.

    If a rule's memory is a mean, as the moments of Adam are, it gets the mean of all changes. The mean is also the
    least that the coordinate itself moves by.
    """
    before = rows[n, at]
    for c in range(NUMBERS):
        coordinate[0, c] = rows[n, at + c]
    step(coordinate, 0, g * slope, rate, NONE, penalty, constants)
    pull = abs(g * slope) + penalty * abs(before)
    closed = NONE
    # Without a pull, only the rule's memory moves the coordinate.
    if pull > 0:
        closed = abs(coordinate[0, 0] - before) * many * (curvature * square + penalty) / pull
    moved = FULL if closed * limit <= FULL else FULL / (closed * limit)
    kept = moved
    if MEANS:
        kept = FULL / max(FULL, many)
        moved = max(moved, kept)
    for c in range(NUMBERS):
        part = FULL if WHOLE[c] else moved if c == 0 else kept
        rows[n, at + c] = part * (coordinate[0, c] - rows[n, at + c])
    return min(FULL, closed * coordinates)


def evaluate(
    indptr: Any, indices: Any, values: Any, labels: Any, weights: Any, order: Any, count: Any, weight_table: Any,
    bias: Any, factors: Any, fields: Any, class_weights: Any, parameter: Any, sums: Any,
) -> None:  # fmt: skip
    """Add up loss, weight, hits or squared errors, labels, squared labels and rows."""
    lane, group, groups = cuda.grid(1) % LANES, cuda.grid(1) // LANES, cuda.gridsize(1) // LANES
    lost, weighed, hits, labelled, squared, rows = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for turn in range((count + groups - 1) // groups):
        k = turn * groups + group
        i, start, end, z = 0, 0, 0, NONE
        if k < count:
            i = order[k]
            start, end = indptr[i], indptr[i + 1]
        scale = length(values, start, end, lane)
        for j in range(start + lane, end, LANES):
            z += weight_table[column(indices, j, start), 0] * value(values, j) * scale
        z = sum_of_lanes(z + pairs_of(factors, fields, indices, values, start, end, scale, lane))
        if k < count and lane == 0:
            y, score = float(labels[i]), float(z + bias[0, 0])
            cost, _ = loss(score, y, parameter)
            weight = float(weight_of(weights, i))
            lost += cost * weight * class_weights[1 if y > 0 else 0]
            weighed += weight
            hits += weight * hit(score, y)
            labelled += weight * y
            squared += weight * y * y
            rows += 1.0
    if rows > 0:
        cuda.atomic.add(sums, 0, lost)
        cuda.atomic.add(sums, 1, weighed)
        cuda.atomic.add(sums, 2, hits)
        cuda.atomic.add(sums, 3, labelled)
        cuda.atomic.add(sums, 4, squared)
        cuda.atomic.add(sums, 5, rows)


def as_it_is(values: Any, start: Any, end: Any, lane: Any) -> Any:
    """Return 1, for rows that are not normalised."""
    return np.float32(1)


def to_length_one(values: Any, start: Any, end: Any, lane: Any) -> Any:
    """Return the factor by which the values of a row are multiplied, so that the sum of their squares is 1."""
    squares = NONE
    for j in range(start + lane, end, LANES):
        squares += value(values, j) * value(values, j)
    squares = sum_of_lanes(squares)
    return np.float32(1) / np.float32(sqrt(squares)) if squares > 0 else np.float32(1)


def fill_weights(table: Any, state: Any, shares: Any, squares: Any) -> None:
    """Write the rule's numbers of each weight, the share and the mean square of its feature to its row."""
    for u in range(cuda.grid(1), table.shape[0], cuda.gridsize(1)):
        for c in range(NUMBERS):
            table[u, c] = state[u, c]
        table[u, NUMBERS], table[u, NUMBERS + 1] = shares[u], squares[u]


def to_rows(columns: Any, table: Any) -> None:
    """Write a table whose numbers of one kind lie side by side as one whose numbers of a coordinate do."""
    for u in range(cuda.grid(1), table.shape[0], cuda.gridsize(1)):
        for c in range(NUMBERS):
            table[u, c] = columns[c, u]


def to_columns(table: Any, columns: Any) -> None:
    """Write a table whose numbers of a coordinate lie side by side as one whose numbers of one kind do."""
    for u in range(cuda.grid(1), table.shape[0], cuda.gridsize(1)):
        for c in range(NUMBERS):
            columns[c, u] = table[u, c]


def in_full(rule: Rule) -> tuple[int, ...]:
    """Return, for each column of a rule's numbers, whether changes count in full."""
    return tuple(int(column in rule.accumulator_columns) for column in range(len(rule.initial)))


@functools.cache
def change_of(rule: Rule) -> Function:
    """Return the function that steps a coordinate with a rule."""
    return bind(change, NUMBERS=len(rule.initial), WHOLE=in_full(rule), MEANS=not rule.adds_up, step=rule.step)


def presence_in(layout: str) -> Function:
    """Return the function of n / d that gives the part of the rows that have a feature."""
    return all_rows if layout == "dense" else some_rows
