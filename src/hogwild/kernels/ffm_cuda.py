"""Products of feature pairs on a GPU, with a row of factors per feature and field of the other (FFM, Juan et al. 2016).

Each lane of a group has every n-th pair of a row's non-zeros. What a pair needs to know of a non-zero is in shared
memory. Pair number p of n non-zeros has the numbers i = p mod n and i + p // n + 1 mod n, so that all lanes have as
many pairs.
"""

# mypy: disable-error-code="name-defined, attr-defined, no-untyped-call, no-any-return, assignment"
# ruff: noqa: F821

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from hogwild.jit import Function, bind
from hogwild.kernels.cuda_jit import cuda
from hogwild.kernels.cuda_vectors import VECTOR, flat_row_adder, fresh_row_loader
from hogwild.kernels.factorisation_cuda import change_of, presence_in
from hogwild.kernels.row_layouts import LAYOUTS
from hogwild.rules.rule import Rule

NONE = np.float32(0)
SHELF = 64  # non-zeros of a row that are in shared memory
RECENT = np.float32(1 / 256)  # weight of the latest pair in mean squares


def score_pairs(
    factors: Any, fields: Any, indices: Any, values: Any, start: Any, end: Any, scale: Any, lane: Any, near: Any,
    near_columns: Any, near_values: Any, totals: Any, table: Any, in_flight: Any, row_columns: Any, row_numbers: Any,
    place: Any,
) -> Any:  # fmt: skip
    """Return this lane's part of the sum of all products, and write the row's non-zeros to shared memory."""
    n_fields, length = np.int64(fields[fields.size - 1]), end - start
    wait_for_lanes()
    for j in range(start + lane, min(end, start + SHELF), LANES):
        u, at = np.int64(column(indices, j, start)), place + j - start
        row_columns[0, at], row_columns[1, at] = np.int32(u), np.int32(fields[u])
        row_numbers[0, at] = value(values, j) * scale
        row_numbers[1, at] = in_flight * presence(table[u * WIDTH + NUMBERS])
        row_numbers[2, at] = table[u * WIDTH + NUMBERS + 1]
    wait_for_lanes()
    z, i, d = NONE, lane, 1
    for _ in range(lane, length * (length - 1) // 2, LANES):
        while i >= length:
            i, d = i - length, d + 1
        j = i + d if i + d < length else i + d - length
        u, u_field, x = entry(indices, fields, values, start, scale, row_columns, row_numbers, place, i)
        v, v_field, y = entry(indices, fields, values, start, scale, row_columns, row_numbers, place, j)
        one, other = (u * n_fields + v_field) * PIECES, (v * n_fields + u_field) * PIECES
        product = NONE
        for piece in range(PIECES):
            load_factors(factors, one + piece, near, 0)
            load_factors(factors, other + piece, near, 1)
            for q in range(VECTOR):
                product += near[0, q * NUMBERS] * near[1, q * NUMBERS]
        z += product * x * y
        i += LANES
    return z


def move_pairs(
    factors: Any, fields: Any, indices: Any, values: Any, start: Any, end: Any, scale: Any, lane: Any, near: Any,
    near_columns: Any, near_values: Any, totals: Any, spread: Any, table: Any, g: Any, rate: Any, penalty: Any,
    constants: Any, in_flight: Any, curvature: Any, coordinates: Any, limit: Any, coordinate: Any, row_columns: Any,
    row_numbers: Any, place: Any,
) -> Any:  # fmt: skip
    """Step the factors of this lane's pairs, and return their share in the crowd.

    ``spread[0]`` is the mean square of factors in the pairs before.
    """
    n_fields, length = np.int64(fields[fields.size - 1]), end - start
    met, i, d = NONE, lane, 1
    for _ in range(lane, length * (length - 1) // 2, LANES):
        while i >= length:
            i, d = i - length, d + 1
        j = i + d if i + d < length else i + d - length
        u, u_field, x = entry(indices, fields, values, start, scale, row_columns, row_numbers, place, i)
        v, v_field, y = entry(indices, fields, values, start, scale, row_columns, row_numbers, place, j)
        u_many, u_square = frequency(table, in_flight, row_numbers, place, i, u)
        v_many, v_square = frequency(table, in_flight, row_numbers, place, j, v)
        one, other = (u * n_fields + v_field) * PIECES, (v * n_fields + u_field) * PIECES
        for piece in range(PIECES):
            load_factors(factors, one + piece, near, 0)
            load_factors(factors, other + piece, near, 1)
            squares = NONE
            for q in range(VECTOR):
                squares += near[0, q * NUMBERS] * near[0, q * NUMBERS] + near[1, q * NUMBERS] * near[1, q * NUMBERS]
            squares /= np.float32(2 * VECTOR)
            spread[0] = squares if spread[0] == 0 else spread[0]
            square = u_square * v_square * spread[0]
            for q in range(VECTOR):
                mine, theirs = near[0, q * NUMBERS], near[1, q * NUMBERS]
                met += change(
                    near, 0, q * NUMBERS, x * y * theirs, square, g, penalty, rate, constants, u_many, curvature,
                    coordinates, limit, coordinate,
                )  # fmt: skip
                met += change(
                    near, 1, q * NUMBERS, x * y * mine, square, g, penalty, rate, constants, v_many, curvature,
                    coordinates, limit, coordinate,
                )  # fmt: skip
            spread[0] += RECENT * (squares - spread[0])
            add_factors(factors, one + piece, near, 0)
            add_factors(factors, other + piece, near, 1)
        i += LANES
    return met


def entry(
    indices: Any, fields: Any, values: Any, start: Any, scale: Any, row_columns: Any, row_numbers: Any, place: Any,
    i: Any,
) -> Any:  # fmt: skip
    """Return the column, the field and the value of a row's non-zero number ``i``."""
    if i < SHELF:
        at = place + i
        return np.int64(row_columns[0, at]), np.int64(row_columns[1, at]), row_numbers[0, at]
    u = np.int64(column(indices, start + i, start))
    return u, np.int64(fields[u]), np.float32(value(values, start + i) * scale)


def frequency(table: Any, in_flight: Any, row_numbers: Any, place: Any, i: Any, u: Any) -> Any:
    """Return how many rows in flight have the feature of a row's non-zero number ``i``, and its mean squared value."""
    if i < SHELF:
        return row_numbers[1, place + i], row_numbers[2, place + i]
    return np.float32(in_flight * presence(table[u * WIDTH + NUMBERS])), table[u * WIDTH + NUMBERS + 1]


def pairs_of(factors: Any, fields: Any, indices: Any, values: Any, start: Any, end: Any, scale: Any, lane: Any) -> Any:
    """Return this lane's part of the sum of all products, for evaluation."""
    n_fields, length = np.int64(fields[fields.size - 1]), end - start
    z, i, d = NONE, lane, 1
    for _ in range(lane, length * (length - 1) // 2, LANES):
        while i >= length:
            i, d = i - length, d + 1
        j = i + d if i + d < length else i + d - length
        u, v = np.int64(column(indices, start + i, start)), np.int64(column(indices, start + j, start))
        one, other = (u * n_fields + np.int64(fields[v])) * PADDED, (v * n_fields + np.int64(fields[u])) * PADDED
        product = NONE
        for f in range(PADDED):
            product += factors[one + f, 0] * factors[other + f, 0]
        z += product * (value(values, start + i) * scale) * (value(values, start + j) * scale)
        i += LANES
    return z


def entries(nonzeros: Any) -> Any:
    """Return the number of weights and factors of a row."""
    return nonzeros * (np.float32(1) + (nonzeros - np.float32(1)) * np.float32(RANK))


def sync_warp() -> None:
    """Wait for the other lanes of a warp."""
    cuda.syncwarp()


def do_not_wait() -> None:
    """Do nothing, for groups of one lane."""


@functools.cache
def lane_barrier(lanes: int) -> Function:
    """Return the function that waits for the other lanes of a group."""
    return do_not_wait if lanes == 1 else sync_warp


@functools.cache
def descent_parts(
    layout: str, rule: Rule, lanes: int, groups: int, nonzeros: int, rank: int, padded: int, width: int
) -> dict[str, Any]:
    """Return the parts of the descent for at most ``groups`` groups of ``lanes`` lanes in a block."""
    numbers, columns = len(rule.initial), LAYOUTS[layout]
    presence, vectors = presence_in(layout), VECTOR * numbers
    read = bind(entry, **columns, SHELF=SHELF)
    shared = {
        "LANES": lanes, "PIECES": padded // VECTOR, "NUMBERS": numbers, "entry": read,
        "load_factors": fresh_row_loader(vectors),
    }  # fmt: skip
    return {
        "EACH": 1,
        "NEAR_ROOM": 2,
        "NEAR_WIDTH": vectors,
        "SHELF": SHELF,
        "SHELVES": SHELF * groups,
        "score_pairs": bind(
            score_pairs, **shared, **columns, SHELF=SHELF, WIDTH=width, presence=presence,
            wait_for_lanes=lane_barrier(lanes),
        ),
        "move_pairs": bind(
            move_pairs, **shared, change=change_of(rule), add_factors=flat_row_adder(vectors, vectors),
            frequency=bind(frequency, SHELF=SHELF, WIDTH=width, NUMBERS=numbers, presence=presence),
        ),
        "entries": bind(entries, RANK=rank),
    }  # fmt: skip


@functools.cache
def pairs(layout: str, lanes: int, padded: int) -> Function:
    """Return the function that adds up products for evaluation."""
    return bind(pairs_of, **LAYOUTS[layout], LANES=lanes, PADDED=padded)
