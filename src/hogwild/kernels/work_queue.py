"""A worker's walk over an epoch that is all in memory: it claims parts in compiled code until none is left.

Nobody goes back to Python in between, where workers would have to wait for each other. All that they share besides the
parameters is on one board, an array of counters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.jit import compiled
from hogwild.kernels.atomics import fetch_add, lock, unlock

# mypy: disable-error-code="name-defined, call-arg, unreachable, var-annotated"
# ruff: noqa: F821

# Where on the board: the next part to claim; how many were claimed when someone said stop, or -1. Chunk FIRST is the
# first to be walked, in PARTS parts like all others; LAST is the part at which to end. Then what is for
# hogwild.kernels.spin_wait: who may be in Python, how many tasks were given out, how often a worker was done with one.
NEXT, STOPPED, FIRST, PARTS, LAST = 0, 16, 32, 33, 34
GATE, TASKS, DONE = 48, 64, 80
BEYOND = 2**60  # more parts than there can be

# In a worker's tally: the loss, the terms and the worst mean loss of a part; how many parts to take in one go and
# whether that was what ended it; whether it is to begin, and to end, with what all workers have.
LOSS, TERMS, WORST, LIMIT, LEFT, BEGINS, ENDS = range(7)


def run_queue(board: Any, starts: Any, tally: Any, data: Any, order: Any, rates: Any, rest: Any) -> None:
    """Descend along claimed parts of chunks, and keep a tally.

    Chunk ``c`` is ``order[starts[c]:starts[c + 1]]``; ``rates`` begin with the first chunk that is still to be walked.
    """
    unlock(board, GATE)
    if tally[BEGINS] > 0:
        begin(rest)
        tally[BEGINS] = 0
    before, parts, last, left = starts[board[FIRST]], board[PARTS], board[LAST], tally[LIMIT]
    while left > 0:
        claimed = fetch_add(board, NEXT, 1)
        if claimed >= last:
            break
        low, high = bounds(starts, parts, claimed)
        loss = descend(data, order[low:high], rates[low - before : high - before], rest)
        terms = max(high - low, 1)
        tally[LOSS] += loss
        tally[TERMS] += high - low
        if not loss / terms <= tally[WORST]:  # so written, a NaN is the worst
            tally[WORST] = loss / terms
        if not np.isfinite(loss):
            halt(board)  # nothing that follows can be of use
        left -= 1
    tally[LEFT] = left <= 0
    if left > 0 and tally[ENDS] > 0:
        end(rest, rates)
    lock(board, GATE)


def bounds(starts: Any, parts: Any, number: Any) -> Any:
    """Which terms a part has."""
    chunk, part = number // parts, number % parts
    first, size = starts[chunk], starts[chunk + 1] - starts[chunk]
    return first + part * size // parts, first + (part + 1) * size // parts


@compiled
def halt(board: Any) -> None:
    """Let no part be claimed any more, and note how many were."""
    claimed = fetch_add(board, NEXT, BEYOND)
    if claimed < BEYOND:
        board[STOPPED] = min(claimed, board[LAST])


def no_begin(rest: Any) -> None:
    """There is nothing to begin with."""


def no_end(rest: Any, rates: Any) -> None:
    """There is nothing to end with."""


def with_turns(data: Any, order: Any, rates: Any, rest: Any) -> Any:
    """Call a loop that could also take every n-th term: here it takes each."""
    indptr, indices, values, labels, weights = data
    return kernel(indptr, indices, values, labels, weights, order, 0, 1, rates, *rest)


def without_turns(data: Any, order: Any, rates: Any, rest: Any) -> Any:
    """Call a loop that takes each term."""
    indptr, indices, values, labels, weights = data
    return kernel(indptr, indices, values, labels, weights, order, rates, *rest)


def evaluate_queue(board: Any, starts: Any, tally: Any, data: Any, order: Any, rest: Any, sums: Any) -> None:
    """Measure claimed parts: one row of ``sums`` for each, the last of it the number of terms."""
    unlock(board, GATE)
    indptr, indices, values, labels, weights = data
    parts, last, left = board[PARTS], board[LAST], tally[LIMIT]
    while left > 0:
        claimed = fetch_add(board, NEXT, 1)
        if claimed >= last:
            break
        low, high = bounds(starts, parts, claimed)
        evaluate(indptr, indices, values, labels, weights, order[low:high], *rest, sums[claimed])
        sums[claimed, sums.shape[1] - 1] = high - low
        left -= 1
    tally[LEFT] = left <= 0
    lock(board, GATE)


def new_queue() -> NDArray[Any]:
    """A board for one worker after another, or for several at once."""
    board = np.zeros(96, np.int64)
    reset_queue(board, 0, 1)
    return board


def reset_queue(board: NDArray[Any], first: int, last: int, parts: int = 1) -> None:
    """Let the chunks from ``first`` up to ``last`` be claimed, each in so many parts."""
    board[FIRST], board[PARTS], board[LAST], board[STOPPED] = first, parts, last * parts, -1
    board[NEXT] = first * parts


def new_tally() -> NDArray[Any]:
    """Room for what a worker adds up, and for the rest of its cache line."""
    tally = np.zeros(32)
    tally[LIMIT] = np.inf
    return tally
