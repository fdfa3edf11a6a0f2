"""The board: numbers that workers write and whoever watches them reads, without a lock."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.runtimes.processes.shared_memory import SharedBlock

# One line of whole numbers for each worker, which it alone writes (but for GONE).
SAMPLES, STEPS, EPOCH, BATCH, STATE, GONE, MEETINGS, AVERAGED = range(8)
# One line of sums; of the samples that are UNREAD the losses are not in LOSS yet.
LOSS, BEAT, UNREAD = range(3)
# One line of flags, which the watcher writes (but for TURN).
GO, STOP, PAUSE, TURN = range(4)
# What a worker is doing.
STARTING, READY, TRAINING, PAUSED, FINISHED = range(5)

_WIDTH = 8  # numbers in a cache line
LOOKS = 20  # at numbers that belong together


class SharedCounters:
    """Where everybody is. A number has one writer, and is written at once, so that nobody can see half of one.

    >>> board = SharedCounters(2)
    >>> board.counts[1, SAMPLES] = 64
    >>> board.samples, list(board.living())
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
        """How much memory it takes."""
        return (2 * workers + 1) * _WIDTH * 8

    @property
    def samples(self) -> int:
        """How many samples all workers together have trained on."""
        return int(self.counts[:, SAMPLES].sum())

    @property
    def steps(self) -> int:
        """How many steps all optimisers together have taken."""
        return int(self.counts[:, STEPS].sum())

    @property
    def loss(self) -> float:
        """The summed loss of all samples, each as it was met."""
        return float(self.sums[:, LOSS].sum())

    def met(self) -> tuple[int, float]:
        """How many losses are known, and their sum: both of one moment, unless workers never leave time for a look."""
        now = self._moment()
        for _ in range(LOOKS):
            before, now = now, self._moment()
            if now == before:
                break
        return now

    def _moment(self) -> tuple[int, float]:
        return self.samples - int(self.sums[:, UNREAD].sum()), self.loss

    def reset(self) -> None:
        """Begin anew, while nobody works; those that are gone stay so."""
        gone = self.counts[:, GONE].copy()
        for lines in (self.flags, self.counts, self.sums):
            lines[...] = 0
        self.counts[:, GONE] = gone

    def living(self) -> Any:
        """The workers that are not gone."""
        return (rank for rank in range(self.workers) if not self.counts[rank, GONE])

    def working(self) -> Any:
        """The workers that are neither gone nor have finished."""
        return (rank for rank in self.living() if self.counts[rank, STATE] != FINISHED)

    def states(self) -> list[int]:
        """What each living worker is doing."""
        return [int(self.counts[rank, STATE]) for rank in self.living()]

    def pass_turn(self, rank: int) -> None:
        """Let the next worker that still works have its turn."""
        for after in range(1, self.workers + 1):
            following = (rank + after) % self.workers
            if not self.counts[following, GONE] and self.counts[following, STATE] != FINISHED:
                self.flags[TURN] = following
                return

    def beat(self, rank: int) -> None:
        """Say that a worker is alive."""
        self.sums[rank, BEAT] = time.monotonic()
