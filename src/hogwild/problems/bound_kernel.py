"""Compiled inner loops with all arguments but the data, for one chunk or for all chunks that a worker claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.dataset import Chunk, EpochPlan
from hogwild.kernels.work_queue import LOSS, new_queue, new_tally
from hogwild.problems.problem import State


@dataclass(frozen=True, slots=True, eq=False)
class QueueKernel:
    """Compiled loop that claims parts of chunks itself."""

    kernel: Any
    # (state, sync) -> the arguments of the kernel after the data.
    rest: Callable[[State, Array], tuple[Any, ...]]

    def __call__(self, chunk: Chunk, rates: Array, state: State, sync: Array) -> float:
        """Descend along one chunk; return its summed loss."""
        tally = new_tally()
        starts = np.array([0, len(chunk.order)])
        self.kernel(new_queue(), starts, tally, chunk.rows.arrays, chunk.order, rates, self.rest(state, sync))
        return float(tally[LOSS])

    def walk(self, whole: EpochPlan, board: Array, tally: Array, rates: Array, state: State, sync: Array) -> None:
        """Descend along parts of an epoch until none is left to claim."""
        self.kernel(board, whole.starts, tally, whole.rows.arrays, whole.order, rates, self.rest(state, sync))


@dataclass(frozen=True, slots=True, eq=False)
class RangeKernel:
    """Compiled loop over given terms."""

    kernel: Any
    rest: Callable[[State, Array], tuple[Any, ...]]
    turns: bool  # Whether the kernel can take every n-th term.

    def __call__(self, chunk: Chunk, rates: Array, state: State, sync: Array, first: int = 0, stride: int = 1) -> float:
        """Descend along the terms ``first::stride`` of a chunk; return their summed loss."""
        turns = (first, stride) if self.turns else ()
        return float(self.kernel(*chunk.rows.arrays, chunk.order, *turns, rates, *self.rest(state, sync)))
