"""Inner loops of relaxed graph cuts.

Each loop is a template: the names ``step``, ``hold``, ``claim`` and ``release`` stand for functions that
:func:`hogwild.jit.specialise` binds. Part ``k`` of node ``v`` is row ``v K + k`` of the state.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from hogwild.jit import Function, bind, constant, specialise
from hogwild.kernels import work_queue
from hogwild.kernels.row_layouts import LAYOUTS, span
from hogwild.kernels.sync_policies import ways as ways_of

# mypy: disable-error-code="name-defined, call-arg, unreachable"
# ruff: noqa: F821

# Factor of the distance: two nodes that are wholly in different parts have the L1 distance 2, and cut a whole edge.
HALF = np.float32(0.5)


def descend(
    indptr: Any, indices: Any, values: Any, labels: Any, weights: Any, order: Any, first: Any, stride: Any,
    rates: Any, state: Any, free: Any, constants: Any, sync: Any,
) -> float:  # fmt: skip
    """Descend along the edges ``order[first::stride]``; return the summed weight of their cut fractions.

    A step moves the two ends of an edge nearer to each other, and then projects both to the simplex.
    """
    # This branch is never taken, but tells the compiler the number of columns.
    if state.shape[1] != numbers():
        return np.nan
    parts = np.uint64(state.shape[0] // free.size)
    apart = np.empty(parts, np.float32)
    at, leap, stop, total = np.uint64(first), np.uint64(stride), np.uint64(order.size), 0.0
    while at < stop:
        i = order[at]
        start, end = span(indptr, i)
        hold(sync, indices, start, end)
        one, other = np.uint64(indices[start]), np.uint64(indices[start + np.uint64(1)])
        u, v = one * parts, other * parts
        distance = np.float32(0)
        for k in range(parts):
            apart[k] = state[u + k, 0] - state[v + k, 0]
            distance += abs(apart[k])
        weight = HALF * weights[i]
        total += weight * distance
        claim(sync, at)
        if distance > 0:
            for k in range(parts):
                if apart[k] != 0:
                    pull = weight if apart[k] > 0 else -weight
                    if free[one]:
                        step(state, u + k, pull, rates[at], np.float32(0), np.float32(0), constants)
                    if free[other]:
                        step(state, v + k, -pull, rates[at], np.float32(0), np.float32(0), constants)
                    meet(state, u + k, v + k, apart[k], free[one], free[other])
            if free[one]:
                project(state, u, parts)
            if free[other]:
                project(state, v, parts)
        release(sync, indices, start, end, at)
        at += leap
    return total


def meet(state: Any, p: Any, q: Any, apart: Any, moves_p: Any, moves_q: Any) -> None:
    """Set two coordinates that have stepped past each other to the same value, where their distance is least."""
    if (state[p, 0] - state[q, 0]) * apart < 0:
        if moves_p and moves_q:
            state[p, 0] = HALF * (state[p, 0] + state[q, 0])
            state[q, 0] = state[p, 0]
        elif moves_p:
            state[p, 0] = state[q, 0]
        else:
            state[q, 0] = state[p, 0]


def project(state: Any, at: Any, parts: Any) -> None:
    """Project a node's shares to the simplex: shares are not negative, and their sum is 1 (Michelot 1986)."""
    total, taking = np.float32(0), np.float32(0)
    for k in range(parts):
        total += state[at + k, 0]
        taking += np.float32(1)
    while True:
        excess = (total - np.float32(1)) / taking
        left, staying = np.float32(0), np.float32(0)
        for k in range(parts):
            if state[at + k, 0] > excess:
                left += state[at + k, 0]
                staying += np.float32(1)
        # The loop also ends here if a share is NaN.
        if not 0 < staying < taking:
            break
        total, taking = left, staying
    for k in range(parts):
        state[at + k, 0] = max(state[at + k, 0] - excess, np.float32(0))


def evaluate(
    indptr: Any, indices: Any, values: Any, labels: Any, weights: Any, order: Any, state: Any, free: Any, sums: Any
) -> None:
    """Write to ``sums`` the summed weight of the cut fractions of the edges ``order``."""
    parts, total = np.uint64(state.shape[0] // free.size), 0.0
    for at in range(order.size):
        i = order[at]
        start, _ = span(indptr, i)
        u, v = np.uint64(indices[start]) * parts, np.uint64(indices[start + np.uint64(1)]) * parts
        distance = 0.0
        for k in range(parts):
            distance += abs(state[u + k, 0] - state[v + k, 0])
        total += HALF * weights[i] * distance
    sums[0] = total


@functools.cache
def descent(access: str, step: Function, numbers: int) -> Any:
    """Return the compiled descent for a rule and an access policy."""
    ways = ways_of(access, LAYOUTS["binary"]["column"])
    parts: dict[str, Any] = {name: ways[name] for name in ("hold", "claim", "release")}
    parts |= {"step": step, "numbers": constant(numbers)}
    if access == "turns":
        return specialise(descend, **parts)
    return work_queue.QueueLoop(bind(descend, **parts), keep=True)


@functools.cache
def evaluation() -> Any:
    """Return the compiled evaluation."""
    return specialise(work_queue.evaluate_queue, evaluate=evaluate)
