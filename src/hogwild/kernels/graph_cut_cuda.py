"""GPU kernels of relaxed graph cuts: a thread for each edge, and plain stores of the shares of its ends.

Of several edges at one node at the same time, the last one's store stays, as in
:mod:`hogwild.kernels.matrix_factorisation_cuda`. A row of ``table`` has, for each number of the rule, the shares of a
node, padded to whole vectors. The names that are not defined here are bound by :func:`hogwild.kernels.cuda_jit.kernel`.
"""

# mypy: disable-error-code="name-defined, attr-defined, no-untyped-call, arg-type, assignment"
# ruff: noqa: F821

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels.cuda_jit import cuda
from hogwild.kernels.cuda_vectors import VECTOR
from hogwild.kernels.graph_cut import HALF, meet, project
from hogwild.kernels.matrix_factorisation_cuda import HALF as UPPER
from hogwild.kernels.matrix_factorisation_cuda import LOW, NOTHING


def descend(
    pairs: Any, weights: Any, order: Any, first: Any, count: Any, rates: Any, table: Any, free: Any, constants: Any,
    sums: Any,
) -> None:  # fmt: skip
    """Descend along the edges ``order[first : first + count]``; add their cut weights to ``sums[0]``."""
    ends, apart = cuda.local.array((BOTH, NUMBERS), np.float32), cuda.local.array(PARTS, np.float32)
    threads, total = cuda.gridsize(1), 0.0
    rounds = (count + threads - 1) // threads
    for turn in range(rounds):
        at = turn * threads + cuda.grid(1)
        if at < count:
            rate, i = rates[turn * len(rates) // rounds], order[first + at]
            u, v, weight = pairs[i] & LOW, pairs[i] >> UPPER, HALF * weights[i]
            load(table, u, ends, 0)
            load(table, v, ends, WIDE)
            distance = NOTHING
            for k in range(PARTS):
                apart[k] = ends[k, 0] - ends[WIDE + k, 0]
                distance += abs(apart[k])
            total += weight * distance
            if distance > 0:
                moves_u, moves_v = free[u], free[v]
                for k in range(PARTS):
                    if apart[k] != 0:
                        pull = weight if apart[k] > 0 else -weight
                        if moves_u:
                            step(ends, k, pull, rate, NOTHING, NOTHING, constants)
                        if moves_v:
                            step(ends, WIDE + k, -pull, rate, NOTHING, NOTHING, constants)
                        meet(ends, k, WIDE + k, apart[k], moves_u, moves_v)
                if moves_u:
                    project(ends, 0, PARTS)
                    store(table, u, ends, 0)
                if moves_v:
                    project(ends, WIDE, PARTS)
                    store(table, v, ends, WIDE)
    if total != 0:
        cuda.atomic.add(sums, 0, total)


def load_shares(table: Any, u: Any, rows: Any, first: Any) -> None:
    """Copy the shares of a node, with all numbers of the rule, to the rows of a local array from ``first`` on."""
    for c in range(NUMBERS):
        for k in range(0, WIDE, VECTOR):
            a, b, d, e = load_vector(table, (u * NUMBERS + c) * WIDE + k)
            rows[first + k, c], rows[first + k + 1, c], rows[first + k + 2, c], rows[first + k + 3, c] = a, b, d, e


def store_shares(table: Any, u: Any, rows: Any, first: Any) -> None:
    """Copy the shares of a node from a local array to the table."""
    for c in range(NUMBERS):
        for k in range(0, WIDE, VECTOR):
            n = first + k
            at = (u * NUMBERS + c) * WIDE + k
            store_vector(table, at, rows[n, c], rows[n + 1, c], rows[n + 2, c], rows[n + 3, c])


def settle(table: Any, free: Any) -> None:
    """Project the shares of all nodes to the simplex, which stores of two edges together can leave."""
    shares = cuda.local.array((WIDE, 1), np.float32)
    for u in range(cuda.grid(1), free.size, cuda.gridsize(1)):
        if free[u]:
            for k in range(PARTS):
                shares[k, 0] = table[u, k]
            project(shares, 0, PARTS)
            for k in range(PARTS):
                table[u, k] = shares[k, 0]


def evaluate(pairs: Any, weights: Any, order: Any, count: Any, table: Any, sums: Any) -> None:
    """Add up the weights of the cut fractions of edges, and edges."""
    total, edges = 0.0, 0.0
    for at in range(cuda.grid(1), count, cuda.gridsize(1)):
        i = order[at]
        u, v, distance = pairs[i] & LOW, pairs[i] >> UPPER, 0.0
        for k in range(PARTS):
            distance += abs(table[u, k] - table[v, k])
        total += HALF * weights[i] * distance
        edges += 1.0
    if edges > 0:
        cuda.atomic.add(sums, 0, total)
        cuda.atomic.add(sums, 1, edges)


def fill(table: Any, state: Any) -> None:
    """Write the shares of a state, with all numbers of the rule, to the table of the kernels."""
    for at in range(cuda.grid(1), state.shape[0], cuda.gridsize(1)):
        for c in range(NUMBERS):
            table[at // PARTS, c * WIDE + at % PARTS] = state[at, c]


def read(table: Any, state: Any) -> None:
    """Write the shares of the kernels' table to a state."""
    for at in range(cuda.grid(1), state.shape[0], cuda.gridsize(1)):
        for c in range(NUMBERS):
            state[at, c] = table[at // PARTS, c * WIDE + at % PARTS]
