"""GPU kernels of matrix completion: a group of lanes for each rating, and plain stores of factors.

The method is batch-Hogwild of cuMF_SGD (Xie et al. 2017). Each group takes consecutive ratings, and each of its lanes
has some factors of the user and of the item. Of several groups at one item at the same time, the last one's store
stays. Each store is a step from recent factors, and several ratings of one item at a time do not overshoot together:
some of its steps are lost, and it has many.

A row of ``table`` has, for each number of the rule, the factors of a user or an item. A row of ``biases`` has the
rule's numbers of one bias. The names that are not defined here are bound by :func:`hogwild.kernels.cuda_jit.kernel`.
"""

# mypy: disable-error-code="name-defined, attr-defined, no-untyped-call, no-any-return, arg-type, assignment"
# ruff: noqa: F821

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.cuda_jit import cuda
from hogwild.kernels.cuda_vectors import VECTOR

NOTHING = np.float32(0)
LINE = 32  # numbers that one prefetch brings
HALF, LOW = np.int64(32), np.int64(2**32 - 1)  # A pair has the user's number in its lower half, the item's above.


def descend(
    pairs: Any, labels: Any, weights: Any, order: Any, first: Any, count: Any, rates: Any, table: Any, biases: Any,
    mean: Any, l2: Any, lowest: Any, constants: Any, sums: Any,
) -> None:  # fmt: skip
    """Descend along the ratings ``order[first : first + count]``, and add their losses to ``sums[0]``."""
    lane, group, groups = cuda.grid(1) % LANES, cuda.grid(1) // LANES, cuda.gridsize(1) // LANES
    own, other = cuda.local.array((MINE, NUMBERS), np.float32), cuda.local.array((MINE, NUMBERS), np.float32)
    bias = cuda.local.array((SIDES, WIDTH), np.float32)
    # All groups make the same number of rounds, as lanes add up together. In each, a lane asks for the factors of one
    # of the next ratings, and reads one of those after them.
    each = (count + groups - 1) // groups
    rounds, total = (each + LANES - 1) // LANES, 0.0
    k, end = first + group * each + lane, first + min(count, (group + 1) * each)
    next_pair, next_label, next_weight = rating(pairs, labels, weights, order, k, end)
    for turn in range(rounds):
        rate, pair, label, heavy = rates[turn * len(rates) // rounds], next_pair, next_label, next_weight
        if heavy >= 0:
            ask(table, pair & LOW)
            ask(table, pair >> HALF)
        k += LANES
        next_pair, next_label, next_weight = rating(pairs, labels, weights, order, k, end)
        for source in range(LANES):
            both, y, weight = of_lane(pair, source), of_lane(label, source), of_lane(heavy, source)
            u, v, z = both & LOW, both >> HALF, NOTHING
            if weight >= 0:
                # All loads come before the first use. Every lane has a bias, and the first two use theirs.
                for s in range(SIDES):
                    load_bias(biases, v if (lane + s) % 2 else u, bias, s)
                for n in range(0, MINE, VECTOR):
                    f = lane * VECTOR + n * LANES
                    if EXACT or f < WIDE:
                        load(table, u, f, own, n)
                        load(table, v, f, other, n)
                for n in range(0, MINE, VECTOR):
                    if EXACT or lane * VECTOR + n * LANES < WIDE:
                        for m in range(n, n + VECTOR):
                            z += own[m, 0] * other[m, 0]
                for s in range(SIDES):
                    z += bias[s, 0] if lane + s < 2 else NOTHING
            z = mean + sum_of_lanes(z)
            if weight >= 0:
                cost, slope = loss(z, y, NOTHING)
                if lane == 0:
                    total += cost * weight
                g, pull = np.float32(slope) * weight, l2 * weight
                for n in range(0, MINE, VECTOR):
                    f = lane * VECTOR + n * LANES
                    if EXACT or f < WIDE:
                        for m in range(n, n + VECTOR):
                            p, q = own[m, 0], other[m, 0]
                            step(own, m, g * q + pull * p, rate, NOTHING, NOTHING, constants)
                            step(other, m, g * p + pull * q, rate, NOTHING, NOTHING, constants)
                            own[m, 0], other[m, 0] = max(own[m, 0], lowest), max(other[m, 0], lowest)
                        store(table, u, f, own, n)
                        store(table, v, f, other, n)
                if BIASED:
                    for s in range(SIDES):
                        step(bias, s, g + pull * bias[s, 0], rate, NOTHING, NOTHING, constants)
                        if lane + s < 2:
                            store_bias(biases, v if lane + s else u, bias, s)
    if lane == 0 and total != 0:
        cuda.atomic.add(sums, 0, total)


def load_factors(table: Any, u: Any, f: Any, rows: Any, n: Any) -> None:
    """Copy factors from number ``f`` on, with all numbers of the rule, to the rows of a local array from ``n`` on."""
    for c in range(NUMBERS):
        at = (u * NUMBERS + c) * WIDE + f
        rows[n, c], rows[n + 1, c], rows[n + 2, c], rows[n + 3, c] = load_vector(table, at)


def store_factors(table: Any, u: Any, f: Any, rows: Any, n: Any) -> None:
    """Copy factors from a local array to the table."""
    for c in range(NUMBERS):
        at = (u * NUMBERS + c) * WIDE + f
        store_vector(table, at, rows[n, c], rows[n + 1, c], rows[n + 2, c], rows[n + 3, c])


def ask_for_factors(table: Any, u: Any) -> None:
    """Ask for the factors of a user or an item, before they are loaded."""
    for f in range(0, NUMBERS * WIDE, LINE):
        prefetch(table, u * (NUMBERS * WIDE) + f)


def load_bias(biases: Any, u: Any, bias: Any, n: Any) -> None:
    """Copy a bias, with all numbers of the rule, to row ``n`` of a local array."""
    for c in range(0, WIDTH, VECTOR):
        bias[n, c], bias[n, c + 1], bias[n, c + 2], bias[n, c + 3] = load_vector(biases, u * WIDTH + c)


def store_bias(biases: Any, u: Any, bias: Any, n: Any) -> None:
    """Copy a bias from row ``n`` of a local array to the table of biases."""
    for c in range(0, WIDTH, VECTOR):
        store_vector(biases, u * WIDTH + c, bias[n, c], bias[n, c + 1], bias[n, c + 2], bias[n, c + 3])


def rating(pairs: Any, labels: Any, weights: Any, order: Any, k: Any, end: Any) -> Any:
    """Return the user and the item of a rating, the rating, and its weight; from ``end`` on, the weight -1."""
    if k >= end:
        return np.int64(0), NOTHING, np.float32(-1)
    i = np.int64(order[k])
    return pairs[i], labels[i], weight_of(weights, i)


def evaluate(
    pairs: Any, labels: Any, weights: Any, order: Any, count: Any, table: Any, biases: Any, stride: Any,
    mean: Any, low: Any, high: Any, sums: Any,
) -> None:  # fmt: skip
    """Add up loss, weight, squared errors of predictions clipped to ``low`` and ``high``, and ratings."""
    lane, group, groups = cuda.grid(1) % LANES, cuda.grid(1) // LANES, cuda.gridsize(1) // LANES
    each = (count + groups - 1) // groups
    begin, end = group * each, min(count, (group + 1) * each)
    lost, weighed, squared, rows = 0.0, 0.0, 0.0, 0.0
    for turn in range((each + LANES - 1) // LANES):
        pair, label, heavy = rating(pairs, labels, weights, order, begin + turn * LANES + lane, end)
        for source in range(LANES):
            both, y, weight = of_lane(pair, source), of_lane(label, source), of_lane(heavy, source)
            u, v, z = both & LOW, both >> HALF, NOTHING
            if weight >= 0:
                z = product(table, u * stride, v * stride, lane)
            z = mean + sum_of_lanes(z)
            if weight >= 0 and lane == 0:
                score, heavy_64 = float(z + (biases[u, 0] + biases[v, 0])), float(weight)
                lost += heavy_64 * loss(score, float(y), 0.0)[0]
                weighed += heavy_64
                error = min(max(score, low), high) - float(y)
                squared += heavy_64 * error * error
                rows += 1.0
    if rows > 0:
        cuda.atomic.add(sums, 0, lost)
        cuda.atomic.add(sums, 1, weighed)
        cuda.atomic.add(sums, 2, squared)
        cuda.atomic.add(sums, 3, rows)


def product(table: Any, a: Any, b: Any, lane: Any) -> Any:
    """Return a lane's part of the product of the factors at two positions of the table."""
    total = NOTHING
    for n in range(0, MINE, VECTOR):
        f = lane * VECTOR + n * LANES
        if EXACT or f < WIDE:
            a0, a1, a2, a3 = load_vector(table, a + f)
            b0, b1, b2, b3 = load_vector(table, b + f)
            total += (a0 * b0 + a1 * b1) + (a2 * b2 + a3 * b3)
    return total


def fill(table: Any, biases: Any, columns: Any) -> None:
    """Write the parameters of a state, whose ``columns`` are the rule's numbers, to the tables of the kernels."""
    for at in range(cuda.grid(1), table.shape[0] * WIDE, cuda.gridsize(1)):
        u, f = at // WIDE, at % WIDE
        for c in range(NUMBERS):
            table[u, c * WIDE + f] = columns[c, u * ROOM + f]
            if f == 0:
                biases[u, c] = columns[c, u * ROOM + WIDE]


def read(table: Any, biases: Any, columns: Any) -> None:
    """Write the parameters of the kernels' tables to a state; the rest of each of its rows is zero."""
    for at in range(cuda.grid(1), columns.shape[1], cuda.gridsize(1)):
        u, f = at // ROOM, at % ROOM
        for c in range(NUMBERS):
            columns[c, at] = table[u, c * WIDE + f] if f < WIDE else biases[u, c] if f == WIDE else NOTHING
