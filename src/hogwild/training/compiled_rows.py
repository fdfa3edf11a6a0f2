"""Rows of simulated workers in the form that a compiled event loop reads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.messaging.deltas import Floats
from hogwild.problems.problem import BoundEventLoop
from hogwild.training.row_order import InMemoryOrder
from hogwild.training.row_trainer import SPAN, RowSource, pack_state, unpack_state


@dataclass(eq=False)
class SimulatedRows:
    """Rows in memory of a problem that has a compiled event loop."""

    source: RowSource
    loop: BoundEventLoop
    in_order: InMemoryOrder

    @classmethod
    def of(cls, source: RowSource) -> SimulatedRows | None:
        """Return the rows of a source; None where there is no compiled event loop for them."""
        loop, order = source.problem.event_loop(source.rule), source.order
        # A worker that is alone may multiply all weights by a factor, as no worker of several does.
        if loop is None or source.workers == 1 or not isinstance(order, InMemoryOrder):
            return None
        return cls(source, loop, order)

    span = SPAN

    @property
    def kernel(self) -> Any:
        """The compiled event loop."""
        return self.loop.kernel

    @property
    def rest(self) -> tuple[Any, ...]:
        """The arguments of the descent after the parameters."""
        return self.loop.rest

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

    def table(self, values: Floats) -> Floats:
        """Return exchanged values as a table with a row for each feature, and one for the intercept."""
        state = self.source.problem.start(self.source.rule)
        unpack_state(values, state)
        return np.concatenate(state)

    def vector(self, table: Floats) -> Floats:
        """Return the exchanged values of such a table."""
        return pack_state((table[:-1], table[-1:]))

    def order(self, epoch: int) -> Array:
        """Return the rows of an epoch, those of each worker after those of the one before."""
        workers = self.source.workers
        return np.concatenate([self.in_order.shard(number, workers, epoch) for number in range(workers)])

    def rates(self, first: int, stop: int) -> Floats:
        """Return the step sizes after ``first`` updates of all workers, up to ``stop``."""
        return self.source.step_sizes(np.arange(first, stop, dtype=np.float64))
