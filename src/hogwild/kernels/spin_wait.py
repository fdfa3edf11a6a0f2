"""How workers wait between tasks: in compiled code, because coming back from a wait in Python takes milliseconds.

A worker that is done watches the board for the next task, for a millisecond; then it sleeps in the kernel until it is
woken. Only one worker at a time goes back into Python, where it can then be sure not to wait for another: it has passed
the gate, which it locks on its way in and unlocks on its way out. The gate only saves time: a worker that is in Python
without having passed it does no harm.
"""

from __future__ import annotations

from typing import Any

from hogwild.jit import compiled
from hogwild.kernels.atomics import fetch_add, load, lock, unlock
from hogwild.kernels.futex import microseconds, offer_core, sleep_while, wake
from hogwild.kernels.work_queue import DONE, GATE, TASKS

# mypy: disable-error-code="call-arg, unreachable, var-annotated"

AWAKE_MICROSECONDS = 1_000  # a worker without a task stays awake for so long
LONGEST_MICROSECONDS = 1_000_000  # and sleeps for so long before it looks up


@compiled
def await_task(board: Any, done: Any, report: Any) -> bool:
    """Report that a task is done, if it is news, and wait for the next; False when it takes long."""
    if report:
        unlock(board, GATE)
        fetch_add(board, DONE, 1)
        wake(board, DONE)
    started = microseconds()
    while load(board, TASKS) == done:
        waited = microseconds() - started
        if waited < AWAKE_MICROSECONDS:
            offer_core()
        elif waited < LONGEST_MICROSECONDS:
            sleep_while(board, TASKS, done, LONGEST_MICROSECONDS)
        else:
            return False
    lock(board, GATE)
    return True


@compiled
def announce_task(board: Any) -> None:
    """Let workers have the next task."""
    fetch_add(board, TASKS, 1)
    wake(board, TASKS)


@compiled
def await_workers(board: Any, wanted: Any, limit: Any) -> bool:
    """Wait until workers were done so many times; False after ``limit`` microseconds."""
    unlock(board, GATE)
    started = microseconds()
    while True:
        done = load(board, DONE)
        if done >= wanted:
            return True
        waited = microseconds() - started
        if waited < AWAKE_MICROSECONDS:
            offer_core()
        elif waited < limit:
            sleep_while(board, DONE, done, limit - waited)
        else:
            return False
