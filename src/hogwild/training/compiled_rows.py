"""Rows of simulated workers in the form that a compiled event loop reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.lazy import cached_property
from hogwild.messaging.deltas import Floats
from hogwild.problems.problem import QueueKernel, State
from hogwild.training.row_order import InMemoryOrder
from hogwild.training.row_trainer import SPAN, RowSource, pack_state, unpack_state


@dataclass(eq=False)
class SimulatedRows:
    """Rows in memory of a problem whose terms change the coordinates of their features, and few others."""

    source: RowSource
    kernel: QueueKernel
    in_order: InMemoryOrder

    @classmethod
    def of(cls, source: RowSource) -> SimulatedRows | None:
        """Return the rows of a source; None where a compiled event loop cannot read them."""
        problem, rule = source.problem, source.rule
        # A worker that is alone may multiply all weights by a factor, as no worker of several does.
        several = source.workers > 1 and not rule.has_duals
        if not (several and problem.has_sparse_terms and isinstance(source.order, InMemoryOrder)):
            return None
        kernel = problem.kernel(rule, "free", 1, False)
        return cls(source, kernel, source.order) if isinstance(kernel, QueueKernel) else None

    span = SPAN

    @cached_property
    def data(self) -> tuple[Array, ...]:
        """The arrays of the rows."""
        return self.in_order.whole(0).rows.arrays

    @property
    def longest(self) -> int:
        """The most entries of a row."""
        return int(np.diff(self.data[0]).max(initial=0))

    @property
    def alike(self) -> int:
        """The number of consecutive terms with the same step size, beyond a table."""
        return int(self.source.problem.updates_per_step)

    @property
    def order_type(self) -> np.dtype[Any]:
        """The type of row numbers."""
        return self.in_order.shard(0, self.source.workers, 0).dtype

    def descent(self, rows: Array, rates: Floats, state: State) -> tuple[Array, int]:
        """Return the record of arguments and the address of the descent along ``rows``, which changes ``state``."""
        return self.kernel.c_function(self.data, rows, rates, state, self.sync)

    @cached_property
    def sync(self) -> Array:
        """The locks of workers that need none."""
        found: Array = self.source.problem.sync_buffer("free")
        return found

    def start(self, values: Floats) -> State:
        """Return exchanged values as a state: the numbers of all features, and those beside them."""
        state: State = self.source.problem.start(self.source.rule)
        unpack_state(values, state)
        return state

    def vector(self, state: State) -> Floats:
        """Return the exchanged values of a state."""
        return pack_state(state)

    def order(self, epoch: int) -> Array:
        """Return the rows of an epoch, those of each worker after those of the one before."""
        workers = self.source.workers
        return np.concatenate([self.in_order.shard(number, workers, epoch) for number in range(workers)])

    def rates(self, first: int, stop: int) -> Floats:
        """Return the step sizes after ``first`` updates of all workers, up to ``stop``."""
        return self.source.step_sizes(np.arange(first, stop, dtype=np.float64))
