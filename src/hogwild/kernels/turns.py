"""Turns: terms are applied in order, each by the worker that computed it.

Every turn has a slot with a cache line to itself, in which the worker before it writes the number of the term that may
be applied now (the array-based queue lock of Anderson 1990). So a worker watches a line that is written once for it,
and a worker that sleeps is woken by the one before it alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.compiled import compiled
from hogwild.kernels.atomics import fetch_add, load, store
from hogwild.kernels.futex import YIELD_MICROSECONDS, fence, microseconds, offer_core, sleep_while, spin, wake

# mypy: disable-error-code="call-arg, unreachable"

SLOTS = 64  # more workers than this share slots, and are woken in vain sometimes
LINE = 8  # numbers in a cache line
SLEEPERS = 1  # where in a slot's line it says how many workers sleep there
SLEEP_MICROSECONDS = 10_000  # a sleeper looks again after so long, woken or not


def new_turns() -> NDArray[np.int64]:
    """Make the turns of a run; the first is that of term 0.

    >>> turns = new_turns(); wait_for(turns, 0); pass_on(turns, 0); wait_for(turns, 1)
    """
    turns = np.empty(SLOTS * LINE, np.int64)
    restart(turns)
    return turns


def restart(turns: NDArray[np.int64]) -> None:
    """Begin again with term 0. Nobody may be waiting."""
    turns[::LINE], turns[SLEEPERS::LINE] = -1, 0
    turns[0] = 0


@compiled
def wait_for(turns: Any, turn: Any) -> None:
    """Wait until all earlier terms have been applied."""
    slot = np.int64(turn) % SLOTS * LINE
    tries, started = 0, np.int64(0)
    while True:
        seen = load(turns, slot)
        if seen == np.int64(turn):
            return
        tries += 1
        if spin(tries):
            continue
        now = microseconds()
        if started == 0:
            started = now
        if now - started < YIELD_MICROSECONDS:
            offer_core()
        else:
            fetch_add(turns, slot + SLEEPERS, 1)
            sleep_while(turns, slot, seen, SLEEP_MICROSECONDS)
            fetch_add(turns, slot + SLEEPERS, -1)


@compiled
def pass_on(turns: Any, turn: Any) -> None:
    """Let the term behind this one be applied."""
    following = np.int64(turn) + 1
    slot = following % SLOTS * LINE
    store(turns, slot, following)
    fence()  # else this thread could miss a sleeper that has missed the number just written
    if load(turns, slot + SLEEPERS) > 0:
        wake(turns, slot)
