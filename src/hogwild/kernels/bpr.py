"""Inner loops of Bayesian personalised ranking (BPR, Rendle et al. 2009).

A term is a user, an item that the user has interacted with ("met"), and an item that the user has not met. The loss
asks the met item to score higher than the other. The kernel draws the other item when it visits the term. The tables
and the names of the parts are those of :mod:`hogwild.kernels.matrix_factorisation`. The functions ``hold`` and
``release`` of this module lock three rows instead of two.
"""

from __future__ import annotations

from math import exp, log1p
from typing import Any

import numpy as np

from hogwild.jit import Function
from hogwild.kernels.atomics import lock, unlock
from hogwild.kernels.matrix_factorisation import NOTHING, dot
from hogwild.kernels.row_layouts import span
from hogwild.kernels.simd import sgd_of_three
from hogwild.kernels.sync_policies import no_claim, pass_on, wait_delay, wait_for_turn

# mypy: disable-error-code="name-defined, call-arg, unreachable"
# ruff: noqa: F821

# Maximum number of draws of an item that the user has not met. A term whose draws all fail is skipped.
TRIES = 16


def descend_pairs(
    indptr: Any, indices: Any, values: Any, labels: Any, weights: Any, order: Any, first: Any, stride: Any,
    rates: Any, table: Any, bits: Any, wide: Any, room: Any, biased: Any, l2: Any, lowest: Any, constants: Any,
    met: Any, met_items: Any, users: Any, items: Any, sync: Any,
) -> float:  # fmt: skip
    """Descend along the terms ``order[first::stride]``; return their summed loss.

    The term and the last bits of the user's own parameters determine which item is drawn. ``bits`` is the table of
    parameters, read as integers. So workers share no random generator, and a checkpoint need not store one.
    """
    if table.shape[1] != numbers():
        return np.nan
    k, leap, stop, total = np.uint64(first), np.uint64(stride), np.uint64(order.size), 0.0
    while k < stop:
        row = order[k]
        start, _ = span(indptr, row)
        u, i = np.uint64(indices[start]), np.uint64(indices[start + np.uint64(1)])
        a = u * room
        chance = np.uint64(bits[a, 0]) << np.uint64(32) ^ np.uint64(bits[a + np.uint64(1), 0]) ^ np.uint64(row)
        j = draw(chance, u, i, met, met_items, users, items)
        hold(sync, u, i, j)
        b, c = i * room, j * room
        gap = dot(table, a, b, wide) - dot(table, a, c, wide) + table[b + wide, 0] - table[c + wide, 0]
        weight = weights[row] if weights.size else np.float32(1)
        if j == i:  # All draws failed.
            weight = NOTHING
        cost, slope = preference(float(gap))
        total += float(cost * weight)
        g, pull, rate = np.float32(slope * weight), l2 * weight, np.float32(rates[k])
        claim(sync, k)
        if weight != NOTHING:
            step_three(table, a, b, c, wide, g, pull, rate, lowest, constants)
            if biased:
                step(table, b + wide, g + pull * table[b + wide, 0], rate, NOTHING, NOTHING, constants)
                step(table, c + wide, pull * table[c + wide, 0] - g, rate, NOTHING, NOTHING, constants)
        release(sync, u, i, j, k)
        k += leap
    return total


def sgd_three(
    table: Any, a: Any, b: Any, c: Any, wide: Any, g: Any, pull: Any, rate: Any, lowest: Any, constants: Any
) -> None:
    """Step the factors of the user and of both items, with the rule SGD."""
    sgd_of_three(table, a, b, c, wide, g, pull, rate, lowest)


def any_three(
    table: Any, a: Any, b: Any, c: Any, wide: Any, g: Any, pull: Any, rate: Any, lowest: Any, constants: Any
) -> None:
    """Step the factors of the user and of both items, with any rule."""
    for f in range(wide):
        p, q, r = table[a + f, 0], table[b + f, 0], table[c + f, 0]
        step(table, a + f, g * (q - r) + pull * p, rate, NOTHING, NOTHING, constants)
        step(table, b + f, g * p + pull * q, rate, NOTHING, NOTHING, constants)
        step(table, c + f, pull * r - g * p, rate, NOTHING, NOTHING, constants)
        table[a + f, 0] = max(table[a + f, 0], lowest)
        table[b + f, 0] = max(table[b + f, 0], lowest)
        table[c + f, 0] = max(table[c + f, 0], lowest)


def preference(gap: float) -> tuple[float, float]:
    """Return -log sigmoid(gap) and its derivative."""
    small = exp(-abs(gap))
    share = small / (1.0 + small) if gap > 0 else 1.0 / (1.0 + small)
    return log1p(small) + max(-gap, 0.0), -share


def draw(chance: Any, u: Any, i: Any, met: Any, met_items: Any, users: Any, items: Any) -> Any:
    """Return an item that user ``u`` has not met, other than item ``i``; after ``TRIES`` failed draws, return ``i``."""
    low, high = (met[u], met[u + np.uint64(1)]) if u < users else (np.int64(0), np.int64(0))
    for _ in range(TRIES):
        chance += np.uint64(0x9E3779B97F4A7C15)  # The constants are those of SplitMix64 (Steele et al. 2014).
        mixed = (chance ^ (chance >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        item = users + (mixed ^ (mixed >> np.uint64(31))) % items
        begin, end = low, high
        while begin < end:
            middle = (begin + end) // 2
            if np.uint64(met_items[middle]) < item:
                begin = middle + 1
            else:
                end = middle
        if item != i and (begin == high or np.uint64(met_items[begin]) != item):
            return item
    return i


def evaluate_pairs(
    indptr: Any, indices: Any, values: Any, labels: Any, weights: Any, order: Any, table: Any, wide: Any, room: Any,
    met: Any, met_items: Any, users: Any, items: Any, sums: Any,
) -> None:  # fmt: skip
    """Write to ``sums`` the loss, the weight and the weighted count of correctly ranked pairs of the terms ``order``.

    A pair is ranked correctly if the met item scores higher; equal scores count as one half. Each term is compared with
    one drawn item, which is the same in every evaluation. A term for which no item is found has the weight 0.
    """
    lost = weighed = first = 0.0
    for at in range(order.size):
        row = order[at]
        start = np.uint64(indptr[row])
        u, i = np.uint64(indices[start]), np.uint64(indices[start + np.uint64(1)])
        j = draw(u * np.uint64(2654435761) + i, u, i, met, met_items, users, items)
        a, b, c = u * room, i * room, j * room
        gap = float(dot(table, a, b, wide) - dot(table, a, c, wide) + table[b + wide, 0] - table[c + wide, 0])
        weight = 0.0 if j == i else float(weights[row]) if weights.size else 1.0
        lost += weight * preference(gap)[0]
        weighed += weight
        first += weight * (1.0 if gap > 0 else 0.5 if gap == 0 else 0.0)
    sums[0], sums[1], sums[2] = lost, weighed, first


def no_hold(sync: Any, u: Any, i: Any, j: Any) -> None:
    """Read without a lock (Hogwild!, Niu et al. 2011)."""


def no_release(sync: Any, u: Any, i: Any, j: Any, turn: Any) -> None:
    """Do nothing, as no lock was taken."""


def hold_three(sync: Any, u: Any, i: Any, j: Any) -> None:
    """Lock the user and both items, always in ascending order, so that no deadlock is possible."""
    lock(sync, u)
    lock(sync, min(i, j))
    if i != j:
        lock(sync, max(i, j))


def release_three(sync: Any, u: Any, i: Any, j: Any, turn: Any) -> None:
    """Unlock the user and both items."""
    unlock(sync, u)
    unlock(sync, i)
    if i != j:
        unlock(sync, j)


def pass_turn(sync: Any, u: Any, i: Any, j: Any, turn: Any) -> None:
    """Give the turn to the next term."""
    pass_on(sync, turn)


ACCESS_OF_THREE: dict[str, dict[str, Function]] = {
    "free": {"hold": no_hold, "claim": no_claim, "release": no_release},
    "locked": {"hold": hold_three, "claim": no_claim, "release": release_three},
    "turns": {"hold": no_hold, "claim": wait_for_turn, "release": pass_turn},
    "delayed": {"hold": no_hold, "claim": wait_delay, "release": no_release},
}
