"""Local trainer that exchanges changes of frequent features after every burst, and those of rare ones less often."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hogwild.data.packing.mapped_arrays import check_mapped_files
from hogwild.kernels.touched_parameters import weigh_block
from hogwild.messaging import deltas
from hogwild.messaging.deltas import INDEX, Floats, SparseDelta, Vector, frozen
from hogwild.messaging.protocol import Train, Trained
from hogwild.training.burst_loops import BurstLoop, NodeCores, SingleThreadLoop
from hogwild.training.change_shares import ChangeShares, add_change
from hogwild.training.change_weights import ChangeWeights
from hogwild.training.exchange_tiers import BLOCK, ExchangeTiers
from hogwild.training.row_trainer import RowSource, pack_state, unpack_state

_NONE = np.empty(0, np.float32)


@dataclass(eq=False)
class TieredTrainer:
    """Local trainer of one worker on sparse rows whose features are numbered by frequency.

    The trainer keeps its parameters and those that it shares with the other workers: the initial ones with all changes
    that it has sent or received. They differ by the changes of rare features that it has not sent yet.
    """

    rows: RowSource
    weights: ChangeWeights
    tiers: ExchangeTiers
    cores: NodeCores | None = None  # cores that share the bursts; None for one
    saves: bool = False  # whether snapshots are taken of the trainer

    def __post_init__(self) -> None:
        problem, rule = self.rows.problem, self.rows.rule
        alone = self.rows.workers == 1
        self.loop: BurstLoop = (
            SingleThreadLoop(problem, rule, alone) if self.cores is None else self.cores.loop(problem, rule)
        )
        self.state = self.loop.state
        self.shared = tuple(part.copy() for part in self.state)
        self._shares = ChangeShares(self.weights, len(self.state[1]), in_blocks=True)
        self._before: tuple[Train, Floats] | None = None

    def warm_up(self, start: Floats) -> None:
        """Run bursts before training, so that all functions are compiled before other nodes wait for this one."""
        deltas.warm_up()
        shard, terms = self.rows.local_shard, 1 if self.cores is None else self.cores.workers
        self.remember(np.tile(start, 2))
        change = self.burst(Train(start, shard, 0, terms, 0, 1)).change
        self.burst(Train(None, shard, 0, 0, 0, 1, received=change))
        self.remember(np.tile(start, 2))
        self.rows.page_in()

    def burst(self, train: Train) -> Trained:
        """Train on the rows of a burst, and return the change of the frequent features, or of all."""
        if self.saves:
            self._before = train, self.memory(None)
        if train.values is not None:
            self._load(train.values)
        if train.received is not None:
            add_change(self.state, train.received, 1.0)
            add_change(self.shared, train.received, 1.0)
        rates = self.rows.burst_rates(train if train.terms else replace(train, terms=1))
        loss, done = 0.0, 0
        for chunk in self.rows.chunks(train):
            terms = len(chunk.order)
            loss += self.loop(chunk, rates[done : done + terms])
            done += terms
        check_mapped_files()
        step = float(rates[len(rates) // 2])
        return Trained(_NONE, train.terms, train.terms, loss, step, self._weighed_change(train))

    def memory(self, train: Train | None) -> Floats:
        """Return the parameters and the shared ones; those before ``train`` if its result is not handled yet."""
        if train is not None and self._before is not None and self._before[0] is train:
            return self._before[1]
        return frozen(np.concatenate([pack_state(self.state), pack_state(self.shared)]))

    def remember(self, memory: Floats) -> None:
        """Continue from parameters that ``memory`` returned."""
        own, shared = np.split(memory, 2)
        unpack_state(own, self.state)
        unpack_state(shared, self.shared)

    def _load(self, values: Floats) -> None:
        """Replace the shared parameters, and keep the changes that are not sent yet."""
        for part, shared in zip(self.state, self.shared, strict=True):
            part -= shared
        unpack_state(values, self.shared)
        for part, shared in zip(self.state, self.shared, strict=True):
            part += shared

    def _weighed_change(self, train: Train) -> Vector:
        """Return the weighed changes of the features that are exchanged now, and share them."""
        (weights, beside), (shared, shared_beside) = self.state, self.shared
        table, shared_table, width = weights.reshape(-1), shared.reshape(-1), beside.size
        frequent, many = self.tiers.frequent, len(table) // width
        whole = frequent == many or self.tiers.is_whole(train.first, train.terms)
        change = np.empty((1 + (many if whole else frequent), width), np.float32)
        moved = (beside - shared_beside).reshape(-1) * self._shares.beside
        change[0] = moved
        shared_beside += moved.reshape(beside.shape)
        beside[:] = shared_beside
        levels = self._shares.level_of, self._shares.shift, self._shares.shares, self._shares.fixed
        weigh_block(table, shared_table, *levels, 0, len(change) - 1, change[1:].reshape(-1))
        values, size = frozen(change.reshape(-1)), width * (1 + many)
        if whole:
            return values
        groups = np.arange((1 + frequent) // BLOCK, dtype=INDEX)
        return SparseDelta(frozen(groups), values, size, width * BLOCK)
