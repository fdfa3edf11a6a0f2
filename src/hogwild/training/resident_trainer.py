"""Local trainer that keeps its parameters between bursts, and exchanges only what has changed.

The cost of a burst and of an exchange depends on the coordinates that the rows of the burst have, and not on the number
of parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hogwild.data.packing.mapped_arrays import check_mapped_files
from hogwild.kernels.touched_parameters import (
    add_sparse,
    add_whole,
    put_back,
    scatter,
    weigh_changes,
    write_indices,
)
from hogwild.messaging import deltas
from hogwild.messaging.deltas import INDEX, Floats, SparseDelta, Vector, frozen
from hogwild.messaging.protocol import Train, Trained
from hogwild.problems.problem import State
from hogwild.training.burst_loops import BurstLoop, NodeCores, SingleThreadLoop
from hogwild.training.change_damping import ChangeDamping
from hogwild.training.parameters_before import ParametersBefore
from hogwild.training.row_trainer import RowSource, pack_state, unpack_state

_NONE = np.empty(0, np.float32)
WARMED = 2**16  # frequent features whose memory is touched before training, so that the first exchange is no slower
# Non-zeros of a burst, as a multiple of the features, from which on all features count as touched. To find out which
# ones are would take longer than to compare all.
MANY = 1


@dataclass(eq=False)
class ResidentTrainer:
    """Local trainer of one worker on sparse rows, with parameters of its own.

    A burst begins from given parameters, or from those of the trainer with the changes of other workers added. Its
    result is its change, weighed by the number of workers that change the same coordinates.
    """

    rows: RowSource
    weights: Floats  # weight of each parameter's change, in the order of ``pack_state``
    cores: NodeCores | None = None  # cores that share the bursts; None for one

    def __post_init__(self) -> None:
        problem, rule = self.rows.problem, self.rows.rule
        alone = self.rows.workers == 1
        self.loop: BurstLoop = (
            SingleThreadLoop(problem, rule, alone) if self.cores is None else self.cores.loop(problem, rule)
        )
        self.state = self.loop.state
        self._outputs = len(self.state[1])
        data = problem.data
        self._row_length = data.nonzeros / max(1, data.n_rows)
        self._all = np.arange(len(self.state[0]) // self._outputs, dtype=np.uint32)
        self._before = ParametersBefore(self.state, self._all)
        self._damping = ChangeDamping.of(problem, self.rows.rule, self.rows.workers, len(self._all))
        self._last: _Undo | None = None

    def warm_up(self, start: Floats) -> None:
        """Run two bursts before training, so that all functions are compiled before other nodes wait for this one."""
        deltas.warm_up()
        shard, terms = self.rows.local_shard, 1 if self.cores is None else self.cores.workers
        change = self.burst(Train(start, shard, 0, terms, 0, 1)).change
        self.burst(Train(None, shard, 0, terms, 0, 1, received=change))
        self._load(start)
        touch = self._all[:WARMED]
        put_back(self.state[0], touch, self._outputs, self.state[0][: len(touch) * self._outputs].copy())
        self.rows.page_in()

    def burst(self, train: Train) -> Trained:
        """Train on the rows of a burst, and return the change."""
        if train.values is not None:
            self._load(train.values)
        if train.received is not None:
            add_change(self.state, train.received, 1.0)
        rates = self.rows.burst_rates(train)
        touches_all = train.terms * self._row_length > MANY * len(self._all)
        loss, done, before_beside = 0.0, 0, self.state[1].copy()
        if touches_all:
            self._before.note_all()
        for chunk in self.rows.chunks(train):
            terms = len(chunk.order)
            if not touches_all:
                self._before.note(chunk)
            loss += self.loop(chunk, rates[done : done + terms])
            done += terms
        check_mapped_files()
        self._last = _Undo(train, *self._before.take(), before_beside)
        step = float(rates.mean()) if len(rates) else 0.0
        change = self._weighed_change(self._last, self._damping.shares(self.state, train.terms, step))
        return Trained(_NONE, train.terms, train.terms, loss, step, change)

    def memory(self, train: Train | None) -> Floats:
        """Return the parameters; those before the burst ``train`` if its result is not handled yet."""
        last, state = self._last, tuple(part.copy() for part in self.state)
        if train is not None and last is not None and last.train is train:
            put_back(state[0], last.features, self._outputs, last.before)
            state[1][:] = last.before_beside
            if train.received is not None:
                add_change(state, train.received, -1.0)
        return frozen(pack_state(state))

    def remember(self, memory: Floats) -> None:
        """Continue from parameters that ``memory`` returned."""
        self._load(memory)

    def _load(self, values: Floats) -> None:
        unpack_state(values, self.state)

    def _weighed_change(self, last: _Undo, shares: Floats) -> Vector:
        """Return the weighed change of the touched parameters, and continue from these."""
        weights, beside = self.state
        size, width, outputs = len(weights) + len(beside), weights.shape[1], self._outputs
        count = len(last.features) * outputs + outputs
        change = np.empty(width * count, np.float32)
        weigh_changes(
            weights, beside, last.features, outputs, last.before, last.before_beside, self.weights,
            self._damping.tier_of, shares, change,
        )  # fmt: skip
        if len(last.features) == len(self._all):  # in the order of ``pack_state`` already
            return frozen(change)
        if width * count * 8 >= size * width * 4:
            whole = np.zeros(size * width, np.float32)
            scatter(whole, last.features, outputs, width, size, change)
            return frozen(whole)
        indices = np.empty(width * count, INDEX)
        write_indices(last.features, outputs, width, size, indices)
        return SparseDelta(frozen(indices), frozen(change), size * width)


def add_change(state: State, change: Vector, times: float) -> None:
    """Add a change of some or all parameters to a state."""
    if isinstance(change, SparseDelta):
        add_sparse(*state, change.indices, change.values, np.float32(times))
    else:
        add_whole(*state, change, np.float32(times))


@dataclass(frozen=True, slots=True, eq=False)
class _Undo:
    """The last burst, the features that it has touched, and their parameters and those of the intercepts before."""

    train: Train
    features: Any
    before: Floats = field(repr=False)
    before_beside: Floats = field(repr=False)
