"""Turns: terms are applied in order, each by the worker that computed it.

Every turn has a slot with a cache line to itself, in which the worker before it writes the number of the term that may
be applied now (the array-based queue lock of Anderson 1990). So a worker watches a line that is written once for it,
and a worker that sleeps is woken by the one before it alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.jit import compiled
from hogwild.kernels.atomics import fetch_add, load, store
from hogwild.kernels.futex import current_core, fence, microseconds, pause, sleep_while, wake

# mypy: disable-error-code="call-arg, unreachable"

SLOTS = 64  # more workers than this share slots, and are woken in vain sometimes
LINE = 8  # numbers in a cache line
# In a slot's line: the number of the term; how many workers sleep there, how often to look before that, and the core
# of the worker that waits there.
TERM, SLEEPERS, SPINS, CORE = range(4)
FEWEST_SPINS, MOST_SPINS = 300, 2**14  # some microseconds, some hundred
LOOK_SPINS = 32  # between two looks whether both workers are on one core
SHORT_MICROSECONDS = 100  # a sleep that was over so soon should have been a spin
SLEEP_MICROSECONDS = 10_000  # a sleeper looks again after so long, woken or not


def new_turns() -> NDArray[np.int64]:
    """Make the turns of a run; the first is that of term 0.

    >>> turns = new_turns(); wait_for(turns, 0); pass_on(turns, 0); wait_for(turns, 1)
    """
    turns = np.empty(SLOTS * LINE, np.int64)
    turns[SPINS::LINE] = FEWEST_SPINS
    restart(turns)
    return turns


def restart(turns: NDArray[np.int64]) -> None:
    """Begin again with term 0. Nobody may be waiting."""
    turns[TERM::LINE], turns[SLEEPERS::LINE], turns[CORE::LINE] = -1, 0, -2
    turns[0] = 0


@compiled
def wait_for(turns: Any, turn: Any) -> None:
    """Wait until all earlier terms have been applied.

    A worker spins for longer than its neighbour takes for a term. If it slept each time, the scheduler would give its
    core away each time, for a whole time slice where there is other work; and if it yielded, too. Longer waits are for
    a worker that was put aside: then this one sleeps, and leaves that one its core. So it does where both are on one.
    """
    slot, before = np.int64(turn) % SLOTS * LINE, (np.int64(turn) - 1) % SLOTS * LINE
    if load(turns, slot) == np.int64(turn):
        return
    store(turns, slot + CORE, np.int64(current_core()))
    most, spins = load(turns, slot + SPINS), 0
    while True:
        seen = load(turns, slot)
        if seen == np.int64(turn):
            if most > max(FEWEST_SPINS, 8 * spins):
                store(turns, slot + SPINS, most - most // 16)
            return
        if spins < most and not (spins % LOOK_SPINS == 0 and load(turns, before + CORE) == np.int64(current_core())):
            spins += 1
            pause()
            continue
        started = microseconds()
        fetch_add(turns, slot + SLEEPERS, 1)
        sleep_while(turns, slot, seen, SLEEP_MICROSECONDS)
        fetch_add(turns, slot + SLEEPERS, -1)
        store(turns, slot + CORE, np.int64(current_core()))
        if spins >= most and microseconds() - started < SHORT_MICROSECONDS:
            store(turns, slot + SPINS, min(2 * most, MOST_SPINS))


@compiled
def pass_on(turns: Any, turn: Any) -> None:
    """Let the term behind this one be applied."""
    following = np.int64(turn) + 1
    slot = following % SLOTS * LINE
    store(turns, slot, following)
    fence()  # else this thread could miss a sleeper that has missed the number just written
    if load(turns, slot + SLEEPERS) > 0:
        wake(turns, slot)
