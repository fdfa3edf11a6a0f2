"""Bursts along the rows of a problem in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hogwild.data.dataset import Chunk, EpochPlan
from hogwild.errors import ParameterError
from hogwild.messaging.actions import Train
from hogwild.messaging.deltas import Floats, frozen
from hogwild.messaging.events import Trained
from hogwild.problems.problem import State
from hogwild.schedules import Moment, Schedule
from hogwild.training.step_sizes import LAST

FEW_EPOCHS = 4  # whose order is remembered: workers are in one epoch or the next
SPAN = 2**12  # updates whose steps are computed together
FEW_TABLES = 64  # of which so many are remembered


def pack_state(state: State) -> Floats:
    """All numbers of a state side by side: first the values, then what the rule remembers."""
    width = state[0].shape[1]
    return np.concatenate([part[:, column] for column in range(width) for part in state])


def unpack_state(values: Floats, state: State) -> None:
    """Put them back where they were."""
    first = 0
    for column in range(state[0].shape[1]):
        for part in state:
            part[:, column] = values[first : first + len(part)]
            first += len(part)


@dataclass(eq=False)
class _Walk:
    """The rows of an epoch in their order, and of each shard, where they have been asked for."""

    whole: EpochPlan
    shuffled: bool
    _shards: dict[tuple[int, int], Any] = field(default_factory=dict)

    def shard(self, shard: int, shards: int) -> Any:
        """The rows of a shard, side by side.

        Where rows are shuffled it is one piece of the walk. Every n-th row would be the same ones in each epoch,
        because blocks of rows stay together: and those of a worker that is always slow would hardly count.
        """
        if self.shuffled:
            few, more = divmod(len(self.whole.order), shards)
            first = shard * few + min(shard, more)
            return self.whole.order[first : first + few + (shard < more)]
        found = self._shards.get((shard, shards))
        if found is None:  # two may do it at once, and come to the same
            found = self._shards[shard, shards] = np.ascontiguousarray(self.whole.order[shard::shards])
        return found


@dataclass(eq=False)
class RowSource:
    """The rows of a problem in the order of each epoch, and the steps along them; the same for all workers."""

    problem: Any
    rule: Any
    schedule: Schedule
    epochs: int | None
    seed: int
    workers: int
    shuffle: bool = True
    _walks: OrderedDict[int, _Walk] = field(default_factory=OrderedDict)
    _tables: OrderedDict[int, Floats] = field(default_factory=OrderedDict)
    _lock: Any = field(default_factory=threading.Lock)  # workers may be threads

    def __post_init__(self) -> None:
        if self.rule.single_worker:
            raise ParameterError("The rule 'sequential' works alone, on one machine: use the rule 'sgd'.")
        if self.workers > (rows := self.problem.data.n_rows):
            raise ParameterError(f"There are {self.workers:,} workers and {rows:,} rows: use no more than those.")
        self._walk(0)

    def __reduce__(self) -> Any:
        """Sent elsewhere, it makes its walks anew there."""
        given = self.problem, self.rule, self.schedule, self.epochs, self.seed, self.workers, self.shuffle
        return type(self), given

    def _walk(self, epoch: int) -> _Walk:
        """All rows in the order of an epoch."""
        with self._lock:
            if epoch not in self._walks:
                self._walks[epoch] = _Walk(self._whole(epoch), self.shuffle)
                if len(self._walks) > FEW_EPOCHS:
                    self._walks.popitem(last=False)
            return self._walks[epoch]

    def _whole(self, epoch: int) -> EpochPlan:
        data = self._data
        walk = data.epoch(self.seed, epoch) if self.shuffle else data.in_order()
        whole: EpochPlan = walk.whole()
        return whole

    @cached_property
    def _data(self) -> Any:
        data = self.problem.data
        found = data.at_once()
        if found is None:
            raise ParameterError(
                f"{data.name} is larger than memory, and here every worker draws from all of it: give more memory, "
                "or use a strategy in one memory such as 'hogwild'."
            )
        return found

    def chunks(self, train: Train) -> list[Chunk]:
        """The terms of a burst: where one epoch of the shard ends, the next begins."""
        (shard, shards), first, left = train.shard, train.first, train.terms
        rows = self.problem.data.n_rows
        size = len(range(shard, rows, shards))
        chunks = []
        while left:
            epoch, place = divmod(first, max(1, size))
            some = min(left, size - place)
            walk = self._walk(epoch)
            chunks.append(Chunk(walk.whole.rows, walk.shard(shard, shards)[place : place + some]))
            first, left = first + some, left - some
        return chunks

    def rates(self, progress: int, terms: int, stride: int) -> Floats:
        """The steps of some terms, by how far all workers have come together."""
        block, first = divmod(progress, SPAN)
        last = first + stride * (terms - 1)
        if last >= SPAN:
            return self._rates(progress + stride * np.arange(terms, dtype=np.float64))
        some: Floats = self._table(block)[first : last + 1 : stride]
        return some if stride == 1 or terms == 1 else some.copy()

    def _table(self, block: int) -> Floats:
        """The steps of many updates at once: one by one most of the time would go by in preparing for each."""
        found = self._tables.get(block)
        if found is None:
            found = self._rates(np.arange(block * SPAN, (block + 1) * SPAN, dtype=np.float64))
            with self._lock:
                self._tables[block] = found
                if len(self._tables) > FEW_TABLES:
                    self._tables.popitem(last=False)
        return found

    def _rates(self, updates: Floats) -> Floats:
        rows = self.problem.data.n_rows
        fraction = np.minimum(updates / (rows * self.epochs), LAST) if self.epochs else np.zeros(len(updates))
        return np.asarray(self.schedule(Moment(updates + 1, updates / rows, fraction)), np.float32)


@dataclass(eq=False)
class RowTrainer:
    """A worker on rows. It remembers nothing: what rules remember is exchanged with the parameters."""

    rows: RowSource

    def __post_init__(self) -> None:
        problem, alone = self.rows.problem, self.rows.workers == 1
        self.state: State = problem.start(self.rows.rule)
        self.descend = problem.kernel(self.rows.rule, "free", 1, alone)
        self.sync = problem.sync_buffer("free")

    def rehearse(self, start: Floats) -> None:
        """Have everything compiled and at hand before others wait for it."""
        self.burst(Train(start, (0, self.rows.workers), 0, 1, 0, 1))

    def burst(self, train: Train) -> Trained:
        """Descend along some rows, one after the other or all from the same parameters."""
        rates = self.rows.rates(train.progress, train.terms, train.stride)
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
        step = float(rates[0] if len(rates) == 1 else rates.mean()) if len(rates) else 0.0
        return Trained(frozen(values), train.terms, train.terms, loss, step)

    def _together(self, start: Floats, chunks: list[Chunk], rates: Floats) -> tuple[Floats, float]:
        """The mean of what each row alone would have done."""
        total, loss, done = np.zeros(len(start), np.float64), 0.0, 0
        for chunk in chunks:
            for row in range(len(chunk.order)):
                unpack_state(start, self.state)
                one = Chunk(chunk.rows, chunk.order[row : row + 1])
                loss += self.descend(one, rates[done : done + 1], self.state, self.sync)
                total += pack_state(self.state) - start
                done += 1
        return (start + total / max(1, done)).astype(start.dtype), loss
