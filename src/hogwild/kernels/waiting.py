"""How workers wait between tasks: in compiled code, because coming back from a wait in Python takes them milliseconds.

A thread that blocks, for Python's own lock or for a task, may wake no sooner than the clock's next tick. So a worker
that is done watches the board for the next task, and only one worker at a time goes back into Python, where it can
then be sure not to wait for another: it has passed the gate, which it locks on its way in and unlocks on its way out.
The gate saves time and nothing hangs on it; whoever finds himself in Python without having passed it does no harm.
"""

from __future__ import annotations

from typing import Any

from numba import types

from hogwild.compiled import compiled
from hogwild.kernels.atomics import SPINS, fetch_add, load, lock, pause, unlock
from hogwild.kernels.claims import DONE, GATE, TASKS

# mypy: disable-error-code="call-arg, unreachable"

_nap = types.ExternalFunction("usleep", types.int32(types.uint32))
YIELDS = 400_000  # offers of the core to others, about a tenth of a second, before a worker naps
NAPS, NAP = 2_000, 1_000  # naps of so many microseconds before it is parked in Python
A_WHILE = 50_000  # offers before the one who waits for the workers looks up


@compiled
def attend(board: Any, done: Any) -> bool:
    """Say that one is done with a task, and wait for the next; False when it takes too long."""
    if done > 0:
        unlock(board, GATE)
        fetch_add(board, DONE, 1)
    tries = 0
    while load(board, TASKS) == done:
        tries += 1
        if tries > SPINS + YIELDS + NAPS:
            return False
        if tries > SPINS + YIELDS:
            _nap(NAP)
        else:
            pause(tries)
    lock(board, GATE)
    return True


@compiled
def all_done(board: Any, wanted: Any) -> bool:
    """Wait until workers were done so many times; False when it takes long."""
    unlock(board, GATE)
    tries = 0
    while load(board, DONE) < wanted:
        tries += 1
        if tries > A_WHILE:
            return False
        pause(tries)
    return True
