"""A worker's walk over an epoch that is all in memory: it claims chunks in compiled code until none is left.

Nobody goes back to Python in between, where workers would have to wait for each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.kernels.atomics import fetch_add, load

# mypy: disable-error-code="name-defined, call-arg, unreachable"
# ruff: noqa: F821

NEXT, HALT = 0, 16  # in cells of their own cache lines: the next chunk; whether to stop
LOSS, TERMS, WORST = 0, 1, 2


def walk(claims: Any, starts: Any, tally: Any, data: Any, order: Any, rates: Any, rest: Any) -> None:
    """Descend along claimed chunks, and keep a tally of their loss, their terms and the worst mean loss of one.

    Chunk ``c`` is ``order[starts[c]:starts[c + 1]]``; ``rates`` begin with the first chunk that is still to be walked.
    """
    first = starts[claims[HALT + 1]]
    while load(claims, HALT) == 0:
        chunk = fetch_add(claims, NEXT, 1)
        if chunk >= starts.size - 1:
            break
        low, high = starts[chunk], starts[chunk + 1]
        loss = descend(data, order[low:high], rates[low - first : high - first], rest)
        terms = max(high - low, 1)
        tally[LOSS] += loss
        tally[TERMS] += high - low
        if not loss / terms <= tally[WORST]:  # so written, a NaN is the worst
            tally[WORST] = loss / terms
        if not np.isfinite(loss):
            claims[HALT] = 1  # nothing that follows can be of use


def with_turns(data: Any, order: Any, rates: Any, rest: Any) -> Any:
    """Call a loop that could also take every n-th term: here it takes each."""
    indptr, indices, values, labels, weights = data
    return kernel(indptr, indices, values, labels, weights, order, 0, 1, rates, *rest)


def without_turns(data: Any, order: Any, rates: Any, rest: Any) -> Any:
    """Call a loop that takes each term."""
    indptr, indices, values, labels, weights = data
    return kernel(indptr, indices, values, labels, weights, order, rates, *rest)


def new_claims(first: int = 0) -> NDArray[Any]:
    """A counter of chunks, from ``first`` on, and a flag to stop at."""
    claims = np.zeros(64, np.int64)
    claims[NEXT] = claims[HALT + 1] = first
    return claims


def new_tally() -> NDArray[Any]:
    """Room for what a worker adds up, and for the rest of its cache line."""
    return np.zeros(32)
