"""Shared counters, which workers write and their supervisor reads without a lock, and the barrier at the start."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hogwild.runtimes.processes.shared_memory import SharedBlock

# Columns of ``counts``, an array of integers with one row for each worker. Only the worker writes its row, except for
# ENDED, which the supervisor sets when the worker has terminated. EPOCH counts finished epochs, BATCH the batches of
# the current epoch. BARRIERS counts barriers of epoch averaging, AVERAGED the iterates that are in the mean.
SAMPLES, STEPS, EPOCH, BATCH, STATE, ENDED, BARRIERS, AVERAGED = range(8)
# Columns of ``sums``, an array of floats with one row for each worker. LOSS is a sum over samples, and BEAT the time of
# the last heartbeat in seconds (monotonic clock). UNREAD counts samples whose losses are not in LOSS yet.
LOSS, BEAT, UNREAD = range(3)
# Positions in ``flags``, which the supervisor writes. TURN, the rank whose turn it is, is also written by workers.
GO, STOP, PAUSE, TURN = range(4)
# Values of STATE: the phase of a worker.
STARTING, READY, TRAINING, PAUSED, FINISHED = range(5)

_WIDTH = 8  # 64-bit numbers in a cache line; each worker's row has its own cache line
MOST_READS = 20  # largest number of reads until two of them agree


class SharedCounters:
    """Progress, heartbeats and flags of all workers, in shared memory.

    Each number has one writer and is written by one store of 8 bytes, so that no process reads half of a number.

    >>> counters = SharedCounters(2)
    >>> counters.counts[1, SAMPLES] = 64
    >>> counters.samples, list(counters.running())
    (64, [0, 1])
    """

    def __init__(self, workers: int, block: SharedBlock | None = None) -> None:
        self.workers = workers
        self.block = block or SharedBlock(self.size(workers))
        lines = self.block.array(np.int64, (workers + 1, _WIDTH))
        self.flags: NDArray[np.int64] = lines[0]
        self.counts: NDArray[np.int64] = lines[1:]
        self.sums: NDArray[np.float64] = self.block.array(np.float64, (workers, _WIDTH), lines.nbytes)

    @staticmethod
    def size(workers: int) -> int:
        """Return the size of the counters of ``workers`` workers in bytes."""
        return (2 * workers + 1) * _WIDTH * 8

    @property
    def samples(self) -> int:
        """The number of samples that all workers together have trained on."""
        return int(self.counts[:, SAMPLES].sum())

    @property
    def steps(self) -> int:
        """The number of optimiser steps that all workers together have taken."""
        return int(self.counts[:, STEPS].sum())

    @property
    def loss(self) -> float:
        """The sum of the losses of all samples, each computed just before the sample's own update."""
        return float(self.sums[:, LOSS].sum())

    def known_losses(self) -> tuple[int, float]:
        """Return the number of samples whose losses are known, and the sum of these losses, at one moment.

        The two numbers are read until two consecutive reads agree. After ``MOST_READS`` reads without agreement the
        last read is returned, which may mix two moments.
        """
        now = self._moment()
        for _ in range(MOST_READS):
            before, now = now, self._moment()
            if now == before:
                break
        return now

    def _moment(self) -> tuple[int, float]:
        return self.samples - int(self.sums[:, UNREAD].sum()), self.loss

    def reset(self) -> None:
        """Set all numbers except ENDED to zero; no worker may be training at this time."""
        ended = self.counts[:, ENDED].copy()
        for lines in (self.flags, self.counts, self.sums):
            lines[...] = 0
        self.counts[:, ENDED] = ended

    def running(self) -> Iterator[int]:
        """Return the ranks of the workers that have not terminated, in ascending order."""
        return (rank for rank in range(self.workers) if not self.counts[rank, ENDED])

    def working(self) -> Iterator[int]:
        """Return the ranks of the workers that have neither terminated nor finished, in ascending order."""
        return (rank for rank in self.running() if self.counts[rank, STATE] != FINISHED)

    def states(self) -> list[int]:
        """Return the STATE of each worker that has not terminated."""
        return [int(self.counts[rank, STATE]) for rank in self.running()]

    def pass_turn(self, rank: int) -> None:
        """Give the turn to the next worker after ``rank`` that has neither terminated nor finished."""
        for after in range(1, self.workers + 1):
            following = (rank + after) % self.workers
            if not self.counts[following, ENDED] and self.counts[following, STATE] != FINISHED:
                self.flags[TURN] = following
                return

    def beat(self, rank: int) -> None:
        """Record a heartbeat of a worker: the present time of the monotonic clock, in seconds."""
        self.sums[rank, BEAT] = time.monotonic()


def wait_for_start(counters: SharedCounters, rank: int) -> None:
    """Report that a worker is ready, and wait for the start signal of the process that started the worker.

    The wait has no timeout: if that process terminates, this process terminates with it.
    """
    counters.counts[rank, STATE] = READY
    while not counters.flags[GO]:
        time.sleep(0.002)
    counters.beat(rank)
    counters.counts[rank, STATE] = TRAINING
