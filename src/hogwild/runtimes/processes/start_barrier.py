"""Start barrier: workers report that they are ready, and wait for the start signal."""

from __future__ import annotations

import time

from hogwild.runtimes.processes import shared_counters as at
from hogwild.runtimes.processes.shared_counters import SharedCounters


def wait_for_start(board: SharedCounters, rank: int) -> None:
    """Report that a worker is ready, and wait for the start signal of the process that started the worker.

    The wait has no timeout: if that process terminates, this process terminates with it.
    """
    board.counts[rank, at.STATE] = at.READY
    while not board.flags[at.GO]:
        time.sleep(0.002)
    board.beat(rank)
    board.counts[rank, at.STATE] = at.TRAINING
