"""Local trainer of problems of rows: bursts along the rows in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.dataset import Chunk, Dataset, EpochPlan
from hogwild.errors import ParameterError
from hogwild.messaging.deltas import Floats, frozen
from hogwild.messaging.protocol import Train, Trained
from hogwild.problems.problem import State
from hogwild.schedules import Moment, Schedule
from hogwild.training.step_sizes import LAST

FEW_EPOCHS = 4  # number of epochs whose order of rows is cached: most workers are in one epoch or the next
SPAN = 2**12  # number of updates whose step sizes are computed together as one table
FEW_TABLES = 64  # number of tables of step sizes that are cached


def pack_state(state: State) -> Floats:
    """Return a state as one vector: first all values, then the other columns of the rule's state."""
    width = state[0].shape[1]
    return np.concatenate([part[:, column] for column in range(width) for part in state])


def unpack_state(values: Floats, state: State) -> None:
    """Copy a vector that ``pack_state`` made into a state."""
    first = 0
    for column in range(state[0].shape[1]):
        for part in state:
            part[:, column] = values[first : first + len(part)]
            first += len(part)


@dataclass(eq=False)
class _EpochOrder:
    """Order of the rows of an epoch, with the rows of each shard that has been requested."""

    whole: EpochPlan
    shuffled: bool
    _shards: dict[tuple[int, int], Array] = field(default_factory=dict)

    def shard(self, shard: int, shards: int) -> Array:
        """Return the rows of a shard as one contiguous array.

        A shard of shuffled rows is one contiguous part of the order. Every n-th row would be the same rows in each
        epoch, because blocks of rows stay together. The rows of a worker that is always slow would then hardly count.
        """
        if self.shuffled:
            few, more = divmod(len(self.whole.order), shards)
            first = shard * few + min(shard, more)
            return self.whole.order[first : first + few + (shard < more)]
        found = self._shards.get((shard, shards))
        if found is None:  # two threads may compute it at the same time, with the same result
            found = self._shards[shard, shards] = np.ascontiguousarray(self.whole.order[shard::shards])
        return found


@dataclass(eq=False)
class RowSource:
    """Rows of a problem in the order of each epoch, and their step sizes, the same for all workers."""

    problem: Any
    rule: Any
    schedule: Schedule
    epochs: int | None
    seed: int
    workers: int
    shuffle: bool = True
    scale: float = 1.0  # factor of all step sizes, below 1 after a divergence
    _orders: OrderedDict[int, _EpochOrder] = field(default_factory=OrderedDict)
    _tables: OrderedDict[int, Floats] = field(default_factory=OrderedDict)
    _lock: Any = field(default_factory=threading.Lock)  # lock of the caches: workers may be threads of one process

    def __post_init__(self) -> None:
        if self.rule.single_worker:
            raise ParameterError("The rule 'sequential' works alone, on one machine: use the rule 'sgd'.")
        if self.workers > (rows := self.problem.data.n_rows):
            raise ParameterError(f"There are {self.workers:,} workers and {rows:,} rows: use no more than those.")
        self._order(0)

    def __reduce__(self) -> tuple[type[RowSource], tuple[object, ...]]:
        """Pickle without the caches: another process computes its own."""
        given = self.problem, self.rule, self.schedule, self.epochs, self.seed, self.workers, self.shuffle, self.scale
        return type(self), given

    def _order(self, epoch: int) -> _EpochOrder:
        """Return the order of all rows in an epoch."""
        with self._lock:
            if epoch not in self._orders:
                self._orders[epoch] = _EpochOrder(self._whole(epoch), self.shuffle)
                if len(self._orders) > FEW_EPOCHS:
                    self._orders.popitem(last=False)
            return self._orders[epoch]

    def _whole(self, epoch: int) -> EpochPlan:
        data = self._data
        chunks = data.epoch(self.seed, epoch) if self.shuffle else data.in_order()
        whole = chunks.whole()
        assert whole is not None
        return whole

    @cached_property
    def _data(self) -> Dataset:
        data: Dataset = self.problem.training
        found = data.at_once()
        if found is None:
            raise ParameterError(
                f"{data.name} is larger than memory, and here every worker draws from all of it: give more memory, "
                "or use a strategy in one memory such as 'hogwild'."
            )
        return found

    def chunks(self, train: Train) -> list[Chunk]:
        """Return the terms of a burst; after the last row of the shard's epoch, the next epoch begins."""
        (shard, shards), first, left = train.shard, train.first, train.terms
        rows = self.problem.data.n_rows
        size = len(range(shard, rows, shards))
        if size == 0:
            raise ParameterError(f"There are {shards:,} shards and {rows:,} rows: use no more workers than rows.")
        chunks = []
        while left:
            epoch, place = divmod(first, size)
            some = min(left, size - place)
            order = self._order(epoch)
            chunks.append(Chunk(order.whole.rows, order.shard(shard, shards)[place : place + some]))
            first, left = first + some, left - some
        return chunks

    def burst_rates(self, train: Train) -> Floats:
        """Return the step sizes of the terms of a burst."""
        if train.spent > 0:
            updates = train.progress + train.stride * np.arange(train.terms, dtype=np.float64)
            rates = self._rates(updates, train.spent)
        else:
            rates = self.rates(train.progress, train.terms, train.stride)
        return rates if train.scale == 1.0 else (train.scale * rates).astype(rates.dtype)

    def rates(self, progress: int, terms: int, stride: int) -> Floats:
        """Return the step sizes of ``terms`` terms, each ``stride`` updates of all workers after the one before.

        ``progress`` is the number of updates of all workers before the first of these terms.
        """
        block, first = divmod(progress, SPAN)
        last = first + stride * (terms - 1)
        if last >= SPAN:
            alike = self.problem.updates_per_step
            rates = self._rates(progress + stride * np.arange(0, terms, alike, dtype=np.float64))
            return np.repeat(rates, alike)[:terms] if alike > 1 else rates
        some: Floats = self._table(block)[first : last + 1 : stride]
        return some if stride == 1 or terms == 1 else some.copy()

    def _table(self, block: int) -> Floats:
        """Return the step sizes of ``SPAN`` updates.

        One call of a schedule for each update would spend most of its time on the overhead of the call.
        """
        found = self._tables.get(block)
        if found is None:
            found = self._rates(np.arange(block * SPAN, (block + 1) * SPAN, dtype=np.float64))
            with self._lock:
                self._tables[block] = found
                if len(self._tables) > FEW_TABLES:
                    self._tables.popitem(last=False)
        return found

    def _rates(self, updates: Floats, spent: float = 0.0) -> Floats:
        rows = self.problem.data.n_rows
        fraction = np.minimum(updates / (rows * self.epochs), LAST) if self.epochs else np.zeros(len(updates))
        fraction = np.maximum(fraction, min(spent, LAST))
        steps = self.schedule(Moment(updates + 1, updates / rows, fraction))
        return np.asarray(steps if self.scale == 1.0 else self.scale * steps, np.float32)


@dataclass(eq=False)
class RowTrainer:
    """Local trainer of one worker on rows.

    The trainer has no state of its own, because the state of the rule is exchanged with the parameters.
    """

    rows: RowSource
    weights: Floats | None = None  # weight of each value's change; None if all count in full

    def __post_init__(self) -> None:
        problem, alone = self.rows.problem, self.rows.workers == 1
        self.state: State = problem.start(self.rows.rule)
        self.descend = problem.kernel(self.rows.rule, "free", 1, alone)
        self.sync = problem.sync_buffer("free")

    def warm_up(self, start: Floats) -> None:
        """Run one burst before training, so that kernels are compiled before other nodes wait for this worker."""
        self.burst(Train(start, (0, self.rows.workers), 0, 1, 0, 1))

    def burst(self, train: Train) -> Trained:
        """Train on the rows of a burst, one after the other or all from the same parameters."""
        assert train.values is not None
        rates = self.rows.burst_rates(train)
        chunks = self.rows.chunks(train)
        if train.together and train.terms > 1:
            values, loss = self._together(train.values, chunks, rates)
        else:
            unpack_state(train.values, self.state)
            loss, done = 0.0, 0
            for chunk in chunks:
                terms = len(chunk.order)
                loss += self.descend(chunk, rates[done : done + terms], self.state, self.sync)
                done += terms
            values = pack_state(self.state)
        values = values if self.weights is None else train.values + self.weights * (values - train.values)
        step = float(rates[0] if len(rates) == 1 else rates.mean()) if len(rates) else 0.0
        return Trained(frozen(values), train.terms, train.terms, loss, step)

    def _together(self, start: Floats, chunks: list[Chunk], rates: Floats) -> tuple[Floats, float]:
        """Return the start plus the mean of the changes that each row alone would make, and the summed loss."""
        total, loss, done = np.zeros(len(start), np.float64), 0.0, 0
        for chunk in chunks:
            for row in range(len(chunk.order)):
                unpack_state(start, self.state)
                one = Chunk(chunk.rows, chunk.order[row : row + 1])
                loss += self.descend(one, rates[done : done + 1], self.state, self.sync)
                total += pack_state(self.state) - start
                done += 1
        return (start + total / max(1, done)).astype(start.dtype), loss
