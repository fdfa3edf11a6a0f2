"""Waiting for the first worker's word."""

from __future__ import annotations

import time

from hogwild.runtimes.processes import shared_counters as at
from hogwild.runtimes.processes.shared_counters import SharedCounters


def wait_for_start(board: SharedCounters, rank: int) -> None:
    """Say that one is ready, and wait until all are. Should the one that says so die, this process ends with it."""
    board.counts[rank, at.STATE] = at.READY
    while not board.flags[at.GO]:
        time.sleep(0.002)
    board.beat(rank)
    board.counts[rank, at.STATE] = at.TRAINING
