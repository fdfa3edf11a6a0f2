"""Work queue of an epoch whose data is in memory: workers claim parts in compiled code until none is left.

Workers do not return to Python between parts, where they would have to wait for each other. Besides the parameters they
share only the board, an array of counters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.jit import compiled
from hogwild.kernels.atomics import fetch_add, lock, unlock

# mypy: disable-error-code="name-defined, call-arg, unreachable, var-annotated"
# ruff: noqa: F821

# Positions on the board. NEXT: the next part to claim. STOPPED: number of parts claimed before a stop, or -1. FIRST:
# the first chunk to process. PARTS: number of parts of each chunk. LAST: the part at which to end. For
# hogwild.kernels.spin_wait, GATE is the lock of the worker that may be in Python. TASKS counts announced tasks, and
# DONE counts completed tasks over all workers.
NEXT, STOPPED, FIRST, PARTS, LAST = 0, 16, 32, 33, 34
GATE, TASKS, DONE = 48, 64, 80
# A number of parts that no epoch reaches.
BEYOND = 2**60

# Entries of a worker's tally. LOSS: summed loss. TERMS: number of terms. WORST: largest mean loss of a part. LIMIT:
# maximum number of parts per call. LEFT: whether LIMIT ended the call. BEGINS and ENDS: whether the worker synchronises
# with the shared values at the start and at the end of the call.
LOSS, TERMS, WORST, LIMIT, LEFT, BEGINS, ENDS = range(7)


def run_queue(board: Any, starts: Any, tally: Any, data: Any, order: Any, rates: Any, rest: Any) -> None:
    """Descend along claimed parts of chunks, and add to the tally.

    Chunk ``c`` is ``order[starts[c]:starts[c + 1]]``. ``rates`` begin with the first chunk that is still to be
    processed.
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
        # In this form of the comparison, NaN counts as the worst loss.
        if not loss / terms <= tally[WORST]:
            tally[WORST] = loss / terms
        if not np.isfinite(loss):
            # No further update can be useful.
            halt(board)
        left -= 1
    tally[LEFT] = left <= 0
    if left > 0 and tally[ENDS] > 0:
        end(rest, rates)
    lock(board, GATE)


def bounds(starts: Any, parts: Any, number: Any) -> Any:
    """Return the range of terms of a part."""
    chunk, part = number // parts, number % parts
    first, size = starts[chunk], starts[chunk + 1] - starts[chunk]
    return first + part * size // parts, first + (part + 1) * size // parts


@compiled
def halt(board: Any) -> None:
    """Stop all further claims, and record how many parts were claimed."""
    claimed = fetch_add(board, NEXT, BEYOND)
    if claimed < BEYOND:
        board[STOPPED] = min(claimed, board[LAST])


def no_begin(rest: Any) -> None:
    """Do nothing, as the worker has no replica to initialise."""


def no_end(rest: Any, rates: Any) -> None:
    """Do nothing, as the worker has no replica to merge."""


def with_turns(data: Any, order: Any, rates: Any, rest: Any) -> Any:
    """Call a kernel that can take every n-th term, with n = 1."""
    indptr, indices, values, labels, weights = data
    return kernel(indptr, indices, values, labels, weights, order, 0, 1, rates, *rest)


def without_turns(data: Any, order: Any, rates: Any, rest: Any) -> Any:
    """Call a kernel that takes every term."""
    indptr, indices, values, labels, weights = data
    return kernel(indptr, indices, values, labels, weights, order, rates, *rest)


def evaluate_queue(board: Any, starts: Any, tally: Any, data: Any, order: Any, rest: Any, sums: Any) -> None:
    """Evaluate claimed parts, and write one row of ``sums`` for each.

    The last entry of a row is the number of terms.
    """
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
    """Return a board for any number of workers, at once or one after another."""
    board = np.zeros(96, np.int64)
    reset_queue(board, 0, 1)
    return board


def reset_queue(board: NDArray[Any], first: int, last: int, parts: int = 1) -> None:
    """Make the chunks from ``first`` up to ``last`` claimable, each in ``parts`` parts."""
    board[FIRST], board[PARTS], board[LAST], board[STOPPED] = first, parts, last * parts, -1
    board[NEXT] = first * parts


def new_tally() -> NDArray[Any]:
    """Return an empty tally, padded so that it shares no cache line with another worker's."""
    tally = np.zeros(32)
    tally[LIMIT] = np.inf
    return tally
