"""Local trainer of problems of rows: bursts along the rows in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from mmap import PAGESIZE
from typing import Any

import numpy as np

from hogwild.data.dataset import Chunk
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.packing.mapped_arrays import check_mapped_files
from hogwild.data.packing.packed_dataset import PackedDataset
from hogwild.data.sampling import Split
from hogwild.errors import ParameterError
from hogwild.kernels.touched_parameters import weigh_vector
from hogwild.lazy import cached_property
from hogwild.messaging import deltas
from hogwild.messaging.deltas import Floats, frozen
from hogwild.messaging.protocol import Train, Trained
from hogwild.problems.problem import State
from hogwild.schedules import Moment, Schedule
from hogwild.schedules.schedule import check_steps
from hogwild.training.burst_loops import BurstLoop, NodeCores, SingleThreadLoop
from hogwild.training.minibatch_loop import MinibatchLoop
from hogwild.training.row_order import RowOrder, local_shard, order_of
from hogwild.training.step_sizes import LAST

SPAN = 2**12  # number of updates whose step sizes are computed together as one table
FEW_TABLES = 64  # number of tables of step sizes that are cached


def pack_state(state: State) -> Floats:
    """Return a state as one vector: intercepts before features, each value with the rule's state of its coordinate."""
    return np.concatenate([part.reshape(-1) for part in reversed(state)])


def unpack_state(values: Floats, state: State) -> None:
    """Copy a vector that ``pack_state`` made into a state."""
    first = 0
    for part in reversed(state):
        part[:] = values[first : first + part.size].reshape(part.shape)
        first += part.size


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
    own: int | None = None  # shard of the worker that reads; None if several read
    _tables: OrderedDict[int, Floats] = field(default_factory=OrderedDict)
    _lock: Any = field(default_factory=threading.Lock)  # lock of the tables: workers may be threads of one process

    def __post_init__(self) -> None:
        if self.rule.single_worker:
            raise ParameterError("The rule 'sequential' works alone, on one machine: use the rule 'sgd'.")
        if self.workers > (rows := self.problem.data.n_rows):
            raise ParameterError(f"There are {self.workers:,} workers and {rows:,} rows: use no more than those.")
        assert self.order  # Clear errors come before the processes of workers.

    def __reduce__(self) -> tuple[type[RowSource], tuple[object, ...]]:
        """Pickle without the caches: another process computes its own."""
        given = self.problem, self.rule, self.schedule, self.epochs, self.seed, self.workers, self.shuffle, self.scale
        return type(self), (*given, self.own)

    def of(self, worker: int) -> RowSource:
        """Return the rows as one worker reads them: its machine may lack the shards of others."""
        data = self.problem.training
        if not isinstance(data, PackedDataset) or not data.sharded:
            return self  # with what all workers share
        return replace(self, own=worker, _tables=OrderedDict(), _lock=threading.Lock())

    @cached_property
    def order(self) -> RowOrder:
        """The rows of each worker in each epoch."""
        return order_of(self.problem.training, self.seed, self.shuffle, self.problem.sampling != Split(), self.own)

    @property
    def local_shard(self) -> tuple[int, int]:
        """A shard whose rows this machine has, and the number of shards."""
        return local_shard(self.problem.training, self.workers)

    def page_in(self) -> None:
        """Read a number of each page of rows in memory.

        The first access to a page that another process has written takes long, and would slow down the first epoch.
        """
        data = self.problem.training
        if isinstance(data, InMemoryDataset):
            for array in data.rows.arrays:
                array[:: max(1, PAGESIZE // array.itemsize)].max(initial=0)

    def chunks(self, train: Train) -> Iterator[Chunk]:
        """Return the terms of a burst; after the last row of the shard's epoch, the next epoch begins.

        Rows on disk are read when they are needed, and released after that.
        """
        (shard, shards), rows = train.shard, self.problem.data.n_rows
        size = self.order.size(shard, shards)
        if size == 0:
            raise ParameterError(f"There are {shards:,} shards and {rows:,} rows: use no more workers than rows.")
        return self._read(train, size)

    def _read(self, train: Train, size: int) -> Iterator[Chunk]:
        first, left = train.first, train.terms
        while left:
            epoch, place = divmod(first, size)
            chunk = self.order.chunk(*train.shard, epoch, place, min(left, size - place))
            yield chunk
            first, left = first + len(chunk.order), left - len(chunk.order)

    def burst_rates(self, train: Train) -> Floats:
        """Return the step sizes of the terms of a burst."""
        if train.spent > 0:
            updates = train.progress + train.stride * np.arange(train.terms, dtype=np.float64)
            rates = self.step_sizes(updates, train.spent)
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
            rates = self.step_sizes(progress + stride * np.arange(0, terms, alike, dtype=np.float64))
            return np.repeat(rates, alike)[:terms] if alike > 1 else rates
        some: Floats = self._table(block)[first : last + 1 : stride]
        return some if stride == 1 or terms == 1 else some.copy()

    def _table(self, block: int) -> Floats:
        """Return the step sizes of ``SPAN`` updates.

        One call of a schedule for each update would spend most of its time on the overhead of the call.
        """
        found = self._tables.get(block)
        if found is None:
            found = self.step_sizes(np.arange(block * SPAN, (block + 1) * SPAN, dtype=np.float64))
            with self._lock:
                self._tables[block] = found
                if len(self._tables) > FEW_TABLES:
                    self._tables.popitem(last=False)
        return found

    def step_sizes(self, updates: Floats, spent: float = 0.0) -> Floats:
        """Return the step sizes after given numbers of updates of all workers."""
        rows = self.problem.data.n_rows
        fraction = np.minimum(updates / (rows * self.epochs), LAST) if self.epochs else np.zeros(len(updates))
        fraction = np.maximum(fraction, min(spent, LAST))
        steps = check_steps(self.schedule, self.schedule(Moment(updates + 1, updates / rows, fraction)))
        return np.asarray(steps if self.scale == 1.0 else self.scale * steps, np.float32)


@dataclass(eq=False)
class RowTrainer:
    """Local trainer of one worker on rows.

    The trainer has no state of its own, because the state of the rule is exchanged with the parameters.
    """

    rows: RowSource
    weights: Floats | None = None  # weight of each value's change, in the order of ``pack_state``; None if all count
    cores: NodeCores | None = None  # cores that share the bursts; None for one

    def __post_init__(self) -> None:
        problem, rule = self.rows.problem, self.rows.rule
        self.single: BurstLoop = SingleThreadLoop(problem, rule, self.rows.workers == 1)
        self.loop: BurstLoop = self.single if self.cores is None else self.cores.loop(problem, rule)

    def warm_up(self, start: Floats) -> None:
        """Run a burst on each loop before training, so that all is compiled before other nodes wait for this worker."""
        deltas.warm_up()
        for terms in (1,) if self.cores is None else (1, 2 * self.cores.workers):
            self.burst(Train(start, self.rows.local_shard, 0, terms, 0, 1))

    def burst(self, train: Train) -> Trained:
        """Train on the rows of a burst, one after the other or all from the same parameters."""
        assert train.values is not None
        rates = self.rows.burst_rates(train)
        chunks = self.rows.chunks(train)
        if train.together and train.terms > 1:
            values, loss = self._together(train.values, chunks, rates)
        else:
            few = self.cores is not None and train.terms < 2 * self.cores.workers
            values, loss = self._in_turn(self.single if few else self.loop, train.values, chunks, rates)
        check_mapped_files()
        if self.weights is not None:
            weigh_vector(values, train.values, self.weights)
        step = float(rates[0] if len(rates) == 1 else rates.mean()) if len(rates) else 0.0
        return Trained(frozen(values), train.terms, train.terms, loss, step)

    def _in_turn(self, loop: BurstLoop, start: Floats, chunks: Iterable[Chunk], rates: Floats) -> tuple[Floats, float]:
        """Return the parameters after all rows, and the summed loss."""
        unpack_state(start, loop.state)
        loss, done = 0.0, 0
        for chunk in chunks:
            loss += loop(chunk, rates[done : done + len(chunk.order)])
            done += len(chunk.order)
        return pack_state(loop.state), loss

    def _together(self, start: Floats, chunks: Iterable[Chunk], rates: Floats) -> tuple[Floats, float]:
        """Return the start plus the mean of the changes that each row alone would make, and the summed loss."""
        if self.rows.problem.steps_each_coordinate_once:
            return self._minibatch(start, chunks, rates)
        total, loss, done = np.zeros(len(start), np.float64), 0.0, 0
        for chunk in chunks:
            for row in range(len(chunk.order)):
                one = [Chunk(chunk.rows, chunk.order[row : row + 1])]
                values, each = self._in_turn(self.single, start, one, rates[done : done + 1])
                total += values - start
                loss, done = loss + each, done + 1
        return (start + total / max(1, done)).astype(start.dtype), loss

    def _minibatch(self, start: Floats, chunks: Iterable[Chunk], rates: Floats) -> tuple[Floats, float]:
        """Do the same in compiled code, whose time does not depend on the number of parameters for each row."""
        loop, loss, done = self._minibatch_loop, 0.0, 0
        loop.begin(start)
        for chunk in chunks:
            loss += loop(chunk, rates[done : done + len(chunk.order)])
            done += len(chunk.order)
        return start + pack_state(loop.changes()) / np.float32(max(1, done)), loss

    @cached_property
    def _minibatch_loop(self) -> MinibatchLoop:
        return MinibatchLoop(self.rows.problem, self.rows.rule)
