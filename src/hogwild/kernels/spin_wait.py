"""Waits of workers between tasks, in compiled code, because a return from a wait in Python takes milliseconds.

A worker without a task watches the board for AWAKE_MICROSECONDS (one millisecond). Then it sleeps in the operating
system until it is woken. Only one worker at a time returns to Python, where it need not wait for another worker. To
ensure this, a worker locks the gate before it enters Python, and unlocks it after it leaves. The gate only saves time:
a worker that is in Python without the gate does no harm.
"""

from __future__ import annotations

from typing import Any

from hogwild.jit import compiled
from hogwild.kernels.atomics import fetch_add, load, lock, unlock
from hogwild.kernels.futex import microseconds, offer_core, sleep_while, wake
from hogwild.kernels.work_queue import DONE, GATE, TASKS

# mypy: disable-error-code="call-arg, unreachable, var-annotated"

# Microseconds for which a worker without a task stays awake.
AWAKE_MICROSECONDS = 1_000
# Microseconds after which a worker without a task returns to Python.
LONGEST_MICROSECONDS = 1_000_000


@compiled
def await_task(board: Any, done: Any, report: Any) -> bool:
    """Report that a task is done if ``report``, and wait for the next task.

    Return False if there is no task after LONGEST_MICROSECONDS.
    """
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
    """Announce the next task to all workers."""
    fetch_add(board, TASKS, 1)
    wake(board, TASKS)


@compiled
def await_workers(board: Any, wanted: Any, limit: Any) -> bool:
    """Wait until workers have completed ``wanted`` tasks in total; return False after ``limit`` microseconds."""
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
