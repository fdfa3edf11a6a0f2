"""Products of feature pairs, each weighted by the product of two rows of factors (FM, Rendle 2010).

Row ``u`` of the factors is ``factors[u rank : (u + 1) rank]``. The sum over all pairs is half of the difference between
the square of the sum and the sum of the squares. So it takes no longer than a sum over the features.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.jit import always_inline
from hogwild.kernels.row_layouts import span
from hogwild.prefetch import prefetch_to_write

# mypy: disable-error-code="name-defined, call-arg, unreachable"
# ruff: noqa: F821

EIGHT = np.uint64(8)
HALF = np.float32(0.5)


def ranks(sums: Any) -> Any:
    """Return the number of factors of a row, in a form that tells the compiler that it is a multiple of eight."""
    return np.uint64(sums.shape[1]) // EIGHT * EIGHT


@always_inline
def score(
    state: Any, factors: Any, fields: Any, indices: Any, values: Any, start: Any, end: Any, scale: Any, sums: Any
) -> Any:
    """Return the weighted sum of the features and of their products, in the precision of ``sums``.

    Write the sum of the rows of factors to ``sums[0]``.
    """
    rank, zero = ranks(sums), sums.dtype.type(0)
    for f in range(rank):
        sums[0, f] = sums[1, f] = zero
    z = zero
    for j in range(start, end):
        u, x = np.uint64(column(indices, j, start)), sums.dtype.type(value(values, j) * scale)
        z += state[u, 0] * x
        row = u * rank
        for f in range(rank):
            part = factors[row + f, 0] * x
            sums[0, f] += part
            sums[1, f] += part * part
    pairs = zero
    for f in range(rank):
        pairs += sums[0, f] * sums[0, f] - sums[1, f]
    return z + HALF * pairs


@always_inline
def move(
    factors: Any, fields: Any, indices: Any, values: Any, start: Any, end: Any, scale: Any, sums: Any, g: Any,
    rate: Any, decay: Any, constants: Any,
) -> None:  # fmt: skip
    """Step the factors of a term whose score has the derivative ``g``."""
    rank = ranks(sums)
    for j in range(start, end):
        x = value(values, j) * scale
        row, pull = np.uint64(column(indices, j, start)) * rank, g * x
        for f in range(rank):
            slope = pull * (sums[0, f] - factors[row + f, 0] * x)
            step(factors, row + f, slope, rate, np.float32(0), decay, constants)


def look_ahead(indptr: Any, indices: Any, order: Any, k: Any, state: Any, factors: Any, fields: Any, rank: Any) -> None:
    """Prefetch the parameters of term ``k``."""
    if k < np.uint64(order.size):
        start, stop = span(indptr, order[k])
        for j in range(start, stop):
            u = np.uint64(column(indices, j, start))
            prefetch_to_write(state, u, 0)
            for part in range(factors.shape[1]):
                for f in range(0, rank, 16):
                    prefetch_to_write(factors, u * np.uint64(rank) + np.uint64(f), part)
