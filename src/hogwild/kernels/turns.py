"""Turns, by which workers apply their terms in the order of the terms (array-based queue lock, Anderson 1990).

Every turn has a slot in a cache line of its own. The worker before it writes to the slot the number of the term that
may be applied. So a worker watches a cache line that is written once for it, and only the worker before it wakes it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.jit import compiled
from hogwild.kernels.atomics import fetch_add, load, store
from hogwild.kernels.futex import current_core, fence, microseconds, pause, sleep_while, wake

# mypy: disable-error-code="call-arg, unreachable"

# Number of slots; beyond 64 workers, several share a slot and are sometimes woken in vain.
SLOTS = 64
LINE = 8  # Number of int64 numbers in a cache line.
# Positions in a slot's cache line. TERM: number of the term that may be applied. SLEEPERS: number of workers that sleep
# on the slot. SPINS: number of spins before a sleep. CORE: core of the worker that waits on the slot.
TERM, SLEEPERS, SPINS, CORE = range(4)
# Bounds on the number of spins before a sleep, from a few microseconds to a few hundred.
FEWEST_SPINS, MOST_SPINS = 300, 2**14
# Number of spins between two checks of whether both workers run on one core.
LOOK_SPINS = 32
# Microseconds; after a shorter sleep, the number of spins doubles, as spinning would have been better.
SHORT_MICROSECONDS = 100
# Microseconds after which a sleeping worker looks again, woken or not.
SLEEP_MICROSECONDS = 10_000


def new_turns() -> NDArray[np.int64]:
    """Return the turns of a run, of which the first is that of term 0.

    >>> turns = new_turns(); wait_for(turns, 0); pass_on(turns, 0); wait_for(turns, 1)
    """
    turns = np.empty(SLOTS * LINE, np.int64)
    turns[SPINS::LINE] = FEWEST_SPINS
    restart(turns)
    return turns


def restart(turns: NDArray[np.int64]) -> None:
    """Restart with term 0; no worker may be waiting."""
    turns[TERM::LINE], turns[SLEEPERS::LINE], turns[CORE::LINE] = -1, 0, -2
    turns[0] = 0


@compiled
def wait_for(turns: Any, turn: Any) -> None:
    """Wait until all earlier terms have been applied.

    A worker spins for longer than the worker before it takes for a term. If a worker slept or yielded each time, the
    scheduler would give away its core each time. Where there is other work, that lasts a whole time slice.

    A longer wait means that the scheduler has suspended the other worker. This worker then sleeps, which leaves its
    core to the other. A worker also sleeps at once if both run on the same core.
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
    """Give the turn to the term after this one."""
    following = np.int64(turn) + 1
    slot = following % SLOTS * LINE
    store(turns, slot, following)
    # Without the fence, this thread could miss a sleeper that has missed the number just written.
    fence()
    if load(turns, slot + SLEEPERS) > 0:
        wake(turns, slot)
