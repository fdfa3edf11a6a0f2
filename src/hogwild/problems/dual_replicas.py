"""Replicas of the weights for workers of dual coordinate ascent, and how often each tier of them is merged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.dataset import Chunk
from hogwild.kernels import linear_dual
from hogwild.kernels.linear_build import settle_duals
from hogwild.problems.problem import QueueKernel, State

EVERYTHING = 2**17  # most features of which all have replicas
# Part of the distance to the optimum that the steps of all workers between two merges may close, and least rows of a
# worker between two merges of the first tier: a merge takes as long as some ten rows.
MERGED, LEAST_ROWS = 0.5, 16


@dataclass(eq=False)
class DualReplicas:
    """Shared weights, the most frequent feature first, and every worker's replica."""

    by_rank: Array
    tiers: Array
    gains: Array
    kernel: Any
    # (state) -> the arguments of the kernel after the step sizes and before the replica.
    rest: Callable[[State], tuple[Any, ...]]
    workers: int
    shared: Array = field(init=False)
    locks: Array = field(init=False)
    own: list[tuple[Array, ...]] = field(init=False)
    places: Array = field(init=False)  # feature of each rank in a worker's replica

    def __post_init__(self) -> None:
        self.places = self.by_rank
        features, tiers = len(self.by_rank), len(self.gains)
        self.shared = np.zeros((features, 1), np.float32)
        self.locks = linear_dual.new_locks(features)
        self.own = [
            (
                np.zeros((features, 1), np.float32), np.zeros((features, 1), np.float32),
                # Counters of two workers must not share a cache line.
                np.zeros(tiers + 2 * linear_dual.LINE)[:tiers], np.zeros(2 * linear_dual.LINE)[:4].reshape(2, 2),
            )
            for _ in range(self.workers)
        ]  # fmt: skip

    def compile(self, nothing: Chunk, state: State) -> None:
        """Compile the loop and the merge, by a chunk without rows and a merge without changes."""
        self.take(state)
        self._start(0, state)
        self.descent(0)(nothing, np.empty(0, np.result_type(*state)), state, np.zeros(1, np.int64))
        self.settle(0, state)

    def describe(self) -> dict[str, Any]:
        """Return the chosen layout, for records."""
        rows = rows_between_merges(self.gains[0], self.workers)
        return {"coordinates": len(self.by_rank), "of": len(self.by_rank), "rows": rows}

    @property
    def numbers(self) -> Array:
        """The rank of each feature."""
        where = np.empty(len(self.by_rank), np.uint32)
        where[self.by_rank] = np.arange(len(self.by_rank), dtype=np.uint32)
        return where

    def renumber(self) -> None:
        """Expect rows whose features are numbered by rank from now on."""
        self.places = np.arange(len(self.by_rank))

    def renumbered(self, values: State) -> State:
        """Return parameters for rows whose features are numbered by rank."""
        return values[0][self.by_rank], *values[1:]

    def gather(self, state: State, rate: float) -> None:
        """Copy the shared weights, also to every worker's replica."""
        self.take(state)
        for worker in range(self.workers):
            self._start(worker, state)

    def _start(self, worker: int, state: State) -> None:
        own, seen, since, biases = self.own[worker]
        own[self.places] = seen[:] = self.shared
        since[:], biases[:] = 0, state[1][0]

    def take(self, state: State) -> None:
        """Copy the shared weights, but not to the workers' replicas."""
        np.take(state[0], self.by_rank, axis=0, out=self.shared)

    def settle(self, worker: int, state: State) -> None:
        """Merge the remaining changes of a worker's replica."""
        settle_duals(self._arguments(worker, state))

    def scatter(self, state: State) -> None:
        """Copy the shared weights back to the parameters, after all workers have settled."""
        state[0][self.by_rank] = self.shared

    def descent(self, worker: int) -> QueueKernel:
        """Return the bound loop of one worker."""
        return QueueKernel(self.kernel, lambda state, sync: self._arguments(worker, state))

    def _arguments(self, worker: int, state: State) -> tuple[Any, ...]:
        own, seen, since, biases = self.own[worker]
        return (
            *self.rest(state), self.shared, own, seen, since, self.places, self.tiers, self.gains, self.locks, biases,
            worker,
        )  # fmt: skip


def rows_between_merges(gain: float, workers: int) -> int:
    """Return the number of rows of a worker between two merges of the first tier.

    >>> rows_between_merges(0.001, 10)
    51
    """
    return int(MERGED / (gain * workers)) + 1
