"""Products of feature pairs on a GPU, each weighted by the product of two rows of factors (FM, Rendle 2010).

A row of factors has several lanes, each with as many factors as make whole vectors, so that a row is one transaction.
The other lanes of the group have the factors of other features. Sums over features are sums over these lanes.
"""

# mypy: disable-error-code="name-defined, attr-defined, no-untyped-call, no-any-return, assignment"
# ruff: noqa: F821

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from hogwild.jit import Function, bind
from hogwild.kernels.cuda_jit import cuda
from hogwild.kernels.cuda_lanes import own_sum
from hogwild.kernels.cuda_vectors import VECTOR, flat_row_adder, fresh_row_loader
from hogwild.kernels.factorisation_cuda import change_of, presence_in
from hogwild.kernels.row_layouts import LAYOUTS
from hogwild.rules.rule import Rule

NONE, HALF = np.float32(0), np.float32(0.5)
KEPT_NUMBERS = 48  # most numbers of factors that a lane keeps in registers between the score and the step
RECENT = np.float32(1 / 16)  # weight of the latest row in mean squares


def score_pairs(
    factors: Any, fields: Any, indices: Any, values: Any, start: Any, end: Any, scale: Any, lane: Any, near: Any,
    near_columns: Any, near_values: Any, totals: Any, table: Any, in_flight: Any, row_columns: Any, row_numbers: Any,
    place: Any,
) -> Any:  # fmt: skip
    """Return this lane's part of the sum of all products, and write the sums of its factors to ``totals``.

    The factors of the row's first non-zeros stay in ``near``.
    """
    part, team = lane % PARTS, lane // PARTS
    z = NONE
    for q in range(EACH):
        totals[q] = NONE
    for n in range(SLOTS):
        j = start + team + n * TEAMS
        near_columns[n] = np.int32(-1)
        if j < end:
            near_columns[n], near_values[n] = np.int32(column(indices, j, start)), value(values, j) * scale
    for n in range(SLOTS):
        if near_columns[n] >= 0:
            load_factors(factors, np.int64(near_columns[n]) * PARTS + part, near, n)
            for q in range(EACH):
                product = near[n, q * NUMBERS] * near_values[n]
                totals[q] += product
                z -= HALF * product * product
    for j in range(start + team + SLOTS * TEAMS, end, TEAMS):
        load_factors(factors, np.int64(column(indices, j, start)) * PARTS + part, near, SLOTS)
        x = value(values, j) * scale
        for q in range(EACH):
            product = near[SLOTS, q * NUMBERS] * x
            totals[q] += product
            z -= HALF * product * product
    for q in range(EACH):
        totals[q] = sum_of_teams(totals[q])
        if team == 0:
            z += HALF * totals[q] * totals[q]
    return z


def move_pairs(
    factors: Any, fields: Any, indices: Any, values: Any, start: Any, end: Any, scale: Any, lane: Any, near: Any,
    near_columns: Any, near_values: Any, totals: Any, spread: Any, table: Any, g: Any, rate: Any, penalty: Any,
    constants: Any, in_flight: Any, curvature: Any, coordinates: Any, limit: Any, coordinate: Any, row_columns: Any,
    row_numbers: Any, place: Any,
) -> Any:  # fmt: skip
    """Step this lane's factors, and return their share in the crowd.

    ``spread`` has the mean squares of ``totals`` in the rows before. They are about those of the derivatives of a score
    by the factors of features of 1.
    """
    part, team, met = lane % PARTS, lane // PARTS, NONE
    for q in range(EACH):
        spread[q] = totals[q] * totals[q] if spread[q] == 0 else spread[q]
    for n in range(SLOTS):
        if near_columns[n] >= 0:
            u = np.int64(near_columns[n])
            met += move_factors(
                near, n, near_values[n], totals, spread, table, u, g, rate, penalty, constants, in_flight, curvature,
                coordinates, limit, coordinate,
            )  # fmt: skip
            add_factors(factors, u * PARTS + part, near, n)
    for j in range(start + team + SLOTS * TEAMS, end, TEAMS):
        u = np.int64(column(indices, j, start))
        load_factors(factors, u * PARTS + part, near, SLOTS)
        met += move_factors(
            near, SLOTS, value(values, j) * scale, totals, spread, table, u, g, rate, penalty, constants, in_flight,
            curvature, coordinates, limit, coordinate,
        )  # fmt: skip
        add_factors(factors, u * PARTS + part, near, SLOTS)
    for q in range(EACH):
        spread[q] += RECENT * (totals[q] * totals[q] - spread[q])
    return met


def move_factors(
    near: Any, n: Any, x: Any, totals: Any, spread: Any, table: Any, u: Any, g: Any, rate: Any, penalty: Any,
    constants: Any, in_flight: Any, curvature: Any, coordinates: Any, limit: Any, coordinate: Any,
) -> Any:  # fmt: skip
    """Replace a lane's factors of a feature by their changes, and return their share in the crowd."""
    many, square, met = in_flight * presence(table[u * WIDTH + NUMBERS]), table[u * WIDTH + NUMBERS + 1], NONE
    for q in range(EACH):
        slope = x * (totals[q] - near[n, q * NUMBERS] * x)
        met += change(
            near, n, q * NUMBERS, slope, square * spread[q], g, penalty, rate, constants, many, curvature, coordinates,
            limit, coordinate,
        )  # fmt: skip
    return met


def pairs_of(factors: Any, fields: Any, indices: Any, values: Any, start: Any, end: Any, scale: Any, lane: Any) -> Any:
    """Return this lane's part of the sum of all products, for evaluation. A lane has every n-th factor."""
    z = NONE
    for f in range(lane % PARTS, PADDED, PARTS):
        total = NONE
        for j in range(start + lane // PARTS, end, TEAMS):
            product = factors[np.int64(column(indices, j, start)) * PADDED + f, 0] * value(values, j) * scale
            total += product
            z -= HALF * product * product
        total = sum_of_teams(total)
        if lane < PARTS:
            z += HALF * total * total
    return z


def entries(nonzeros: Any) -> Any:
    """Return the number of weights and factors of a row."""
    return nonzeros * np.float32(1 + RANK)


def shuffled_team_sum(z: Any) -> Any:
    """Return the sum over the lanes that have the same factors of other features, in each of them."""
    offset = LANES // 2
    while offset >= PARTS:
        z += cuda.shfl_xor_sync(0xFFFFFFFF, z, offset)
        offset //= 2
    return z


@functools.cache
def team_sum(lanes: int, parts: int) -> Function:
    """Return the function that adds up a number over the lanes of a group that have the same factors."""
    return own_sum if lanes == parts else bind(shuffled_team_sum, LANES=lanes, PARTS=parts)


def lanes_of_a_row(lanes: int, padded: int, numbers: int) -> int:
    """Return the number of lanes that have the factors of a feature: as many as have whole vectors.

    >>> lanes_of_a_row(32, 8, 1), lanes_of_a_row(32, 8, 2), lanes_of_a_row(32, 24, 5), lanes_of_a_row(1, 8, 2)
    (2, 4, 2, 1)
    """
    vectors = padded * math.gcd(VECTOR, numbers) // VECTOR
    return min(lanes, vectors & -vectors)


@functools.cache
def descent_parts(
    layout: str, rule: Rule, lanes: int, groups: int, nonzeros: int, rank: int, padded: int, width: int
) -> dict[str, Any]:
    """Return the parts of the descent for groups of ``lanes`` lanes, and rows of about ``nonzeros`` non-zeros."""
    numbers, presence = len(rule.initial), presence_in(layout)
    parts = lanes_of_a_row(lanes, padded, numbers)
    each, teams = padded // parts, lanes // parts
    vectors = each * numbers
    slots = max(1, min(KEPT_NUMBERS // vectors, -(-nonzeros // teams)))
    shared = {
        **LAYOUTS[layout], "PARTS": parts, "TEAMS": teams, "EACH": each, "SLOTS": slots,
        "load_factors": fresh_row_loader(vectors),
    }  # fmt: skip
    move = bind(move_factors, EACH=each, NUMBERS=numbers, WIDTH=width, change=change_of(rule), presence=presence)
    return {
        "EACH": each,
        "NEAR_ROOM": slots + 1,
        "NEAR_WIDTH": vectors,
        "SHELF": 1,
        "SHELVES": 1,
        "score_pairs": bind(score_pairs, **shared, NUMBERS=numbers, sum_of_teams=team_sum(lanes, parts)),
        "move_pairs": bind(move_pairs, **shared, add_factors=flat_row_adder(vectors, vectors), move_factors=move),
        "entries": bind(entries, RANK=rank),
    }


@functools.cache
def pairs(layout: str, lanes: int, padded: int) -> Function:
    """Return the function that adds up products for evaluation."""
    parts = lanes_of_a_row(lanes, padded, VECTOR)
    return bind(
        pairs_of, **LAYOUTS[layout], PARTS=parts, TEAMS=lanes // parts, PADDED=padded,
        sum_of_teams=team_sum(lanes, parts),
    )  # fmt: skip
