"""GPU kernels of Bayesian personalised ranking, in the way of :mod:`hogwild.kernels.matrix_factorisation_cuda`.

Each lane draws the other item of the term that it reads.
"""

# mypy: disable-error-code="name-defined, attr-defined, no-untyped-call, no-any-return, arg-type, assignment"
# ruff: noqa: F821

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.bpr import draw, preference
from hogwild.kernels.cuda_jit import cuda
from hogwild.kernels.cuda_vectors import VECTOR
from hogwild.kernels.matrix_factorisation_cuda import HALF, LOW, NOTHING

BITS = np.float32(2**40)  # brings the last bits of a factor before the point


def descend(
    pairs: Any, labels: Any, weights: Any, order: Any, first: Any, count: Any, rates: Any, table: Any, biases: Any,
    l2: Any, lowest: Any, constants: Any, met: Any, met_items: Any, users: Any, items: Any, sums: Any,
) -> None:  # fmt: skip
    """Descend along the terms ``order[first : first + count]``, and add their losses to ``sums[0]``."""
    lane, group, groups = cuda.grid(1) % LANES, cuda.grid(1) // LANES, cuda.gridsize(1) // LANES
    own, liked = cuda.local.array((MINE, NUMBERS), np.float32), cuda.local.array((MINE, NUMBERS), np.float32)
    other, bias = cuda.local.array((MINE, NUMBERS), np.float32), cuda.local.array((SIDES, WIDTH), np.float32)
    each = (count + groups - 1) // groups
    rounds, total = (each + LANES - 1) // LANES, 0.0
    k, end = first + group * each + lane, first + min(count, (group + 1) * each)
    next_pair, _, next_weight = rating(pairs, labels, weights, order, k, end)
    for turn in range(rounds):
        rate, pair, heavy, drawn = rates[turn * len(rates) // rounds], next_pair, next_weight, np.int64(0)
        if heavy >= 0:
            # The term and the user's own factors determine which item is drawn, as on processors.
            a, b, _, _ = load_vector(table, (pair & LOW) * NUMBERS * WIDE)
            high, low = np.uint64(np.int64(a * BITS)), np.uint64(np.int64(b * BITS))
            chance = high << np.uint64(32) ^ low ^ np.uint64(order[k])
            drawn, heavy = other_item(chance, pair, heavy, met, met_items, users, items)
            ask(table, pair & LOW)
            ask(table, pair >> HALF)
            ask(table, drawn)
        k += LANES
        next_pair, _, next_weight = rating(pairs, labels, weights, order, k, end)
        for source in range(LANES):
            both, j, weight = of_lane(pair, source), of_lane(drawn, source), of_lane(heavy, source)
            u, i, gap = both & LOW, both >> HALF, NOTHING
            if weight >= 0:
                for s in range(SIDES):
                    load_bias(biases, j if (lane + s) % 2 else i, bias, s)
                for n in range(0, MINE, VECTOR):
                    f = lane * VECTOR + n * LANES
                    if EXACT or f < WIDE:
                        load(table, u, f, own, n)
                        load(table, i, f, liked, n)
                        load(table, j, f, other, n)
                for n in range(0, MINE, VECTOR):
                    if EXACT or lane * VECTOR + n * LANES < WIDE:
                        for m in range(n, n + VECTOR):
                            gap += own[m, 0] * (liked[m, 0] - other[m, 0])
                for s in range(SIDES):
                    gap += (bias[s, 0] if lane + s == 0 else -bias[s, 0]) if lane + s < 2 else NOTHING
            gap = sum_of_lanes(gap)
            if weight > 0:
                cost, slope = preference(float(gap))
                if lane == 0:
                    total += cost * weight
                g, pull = np.float32(slope) * weight, l2 * weight
                for n in range(0, MINE, VECTOR):
                    f = lane * VECTOR + n * LANES
                    if EXACT or f < WIDE:
                        for m in range(n, n + VECTOR):
                            p, q, r = own[m, 0], liked[m, 0], other[m, 0]
                            step(own, m, g * (q - r) + pull * p, rate, NOTHING, NOTHING, constants)
                            step(liked, m, g * p + pull * q, rate, NOTHING, NOTHING, constants)
                            step(other, m, pull * r - g * p, rate, NOTHING, NOTHING, constants)
                            own[m, 0], liked[m, 0] = max(own[m, 0], lowest), max(liked[m, 0], lowest)
                            other[m, 0] = max(other[m, 0], lowest)
                        store(table, u, f, own, n)
                        store(table, i, f, liked, n)
                        store(table, j, f, other, n)
                if BIASED:
                    for s in range(SIDES):
                        slant = pull * bias[s, 0] + (-g if lane + s else g)
                        step(bias, s, slant, rate, NOTHING, NOTHING, constants)
                        if lane + s < 2:
                            store_bias(biases, j if lane + s else i, bias, s)
    if lane == 0 and total != 0:
        cuda.atomic.add(sums, 0, total)


def other_item(
    chance: Any, pair: Any, weight: Any, met: Any, met_items: Any, users: Any, items: Any
) -> Any:  # fmt: skip
    """Return an item that the user has not met, and the term's weight, which is 0 if none was found."""
    i = np.uint64(pair >> HALF)
    j = draw(chance, np.uint64(pair & LOW), i, met, met_items, users, items)
    return np.int64(j), NOTHING if j == i else np.float32(weight)


def evaluate(
    pairs: Any, labels: Any, weights: Any, order: Any, count: Any, table: Any, biases: Any, stride: Any, met: Any,
    met_items: Any, users: Any, items: Any, sums: Any,
) -> None:  # fmt: skip
    """Add up loss, weight, the weighted count of correctly ranked pairs, and terms."""
    lane, group, groups = cuda.grid(1) % LANES, cuda.grid(1) // LANES, cuda.gridsize(1) // LANES
    each = (count + groups - 1) // groups
    begin, end = group * each, min(count, (group + 1) * each)
    lost, weighed, right, rows = 0.0, 0.0, 0.0, 0.0
    for turn in range((each + LANES - 1) // LANES):
        pair, _, heavy = rating(pairs, labels, weights, order, begin + turn * LANES + lane, end)
        drawn = np.int64(0)
        if heavy >= 0:
            chance = np.uint64(pair & LOW) * np.uint64(2654435761) + np.uint64(pair >> HALF)
            drawn, heavy = other_item(chance, pair, heavy, met, met_items, users, items)
        for source in range(LANES):
            both, j, weight = of_lane(pair, source), of_lane(drawn, source), of_lane(heavy, source)
            u, i, gap = both & LOW, both >> HALF, NOTHING
            if weight >= 0:
                gap = product(table, u * stride, i * stride, lane) - product(table, u * stride, j * stride, lane)
            gap = sum_of_lanes(gap)
            if weight >= 0 and lane == 0:
                found, heavy_64 = float(gap + (biases[i, 0] - biases[j, 0])), float(weight)
                lost += heavy_64 * preference(found)[0]
                weighed += heavy_64
                right += heavy_64 * (1.0 if found > 0 else 0.5 if found == 0 else 0.0)
                rows += 1.0
    if rows > 0:
        cuda.atomic.add(sums, 0, lost)
        cuda.atomic.add(sums, 1, weighed)
        cuda.atomic.add(sums, 2, right)
        cuda.atomic.add(sums, 3, rows)
