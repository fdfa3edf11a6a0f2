"""Local trainer that keeps its parameters between bursts, and exchanges only what has changed.

The cost of a burst and of an exchange depends on the coordinates that the rows of the burst have, and not on the number
of parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hogwild.data.packing.mapped_arrays import check_mapped_files
from hogwild.kernels.touched_parameters import weigh_all_changes, weigh_changes
from hogwild.messaging import deltas
from hogwild.messaging.deltas import INDEX, Floats, SparseDelta, Vector, compact, frozen
from hogwild.messaging.protocol import Train, Trained
from hogwild.training.burst_loops import BurstLoop, NodeCores, SingleThreadLoop
from hogwild.training.change_shares import ChangeShares, add_change
from hogwild.training.change_weights import ChangeWeights
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
    weights: ChangeWeights
    cores: NodeCores | None = None  # cores that share the bursts; None for one

    def __post_init__(self) -> None:
        problem, rule = self.rows.problem, self.rows.rule
        alone = self.rows.workers == 1
        self.loop: BurstLoop = (
            SingleThreadLoop(problem, rule, alone) if self.cores is None else self.cores.loop(problem, rule)
        )
        self.state = self.loop.state
        weights, beside = self.state
        # The parameters of a feature, of all outputs, lie together.
        self._table, self._beside = weights.reshape(-1, beside.size), beside.reshape(-1)
        data = problem.data
        self._row_length = data.nonzeros / max(1, data.n_rows)
        self._before = ParametersBefore(self._table)
        by_frequency = bool((np.diff(self.weights.parts[0]) >= 0).all())
        self._shares = ChangeShares(self.weights, len(beside), in_blocks=by_frequency)
        self._last: _LastBurst | None = None

    def warm_up(self, start: Floats) -> None:
        """Run two bursts before training, so that all functions are compiled before other nodes wait for this one."""
        deltas.warm_up()
        shard, terms = self.rows.local_shard, 1 if self.cores is None else self.cores.workers
        change = self.burst(Train(start, shard, 0, terms, 0, 1)).change
        self.burst(Train(None, shard, 0, terms, 0, 1, received=change))
        self._load(start)
        self._table[:WARMED] += 0
        self.rows.page_in()

    def burst(self, train: Train) -> Trained:
        """Train on the rows of a burst, and return the change."""
        if train.values is not None:
            self._load(train.values)
        if train.received is not None:
            add_change(self.state, train.received, 1.0)
        rates = self.rows.burst_rates(train)
        loss, done, before_beside = 0.0, 0, self._beside.copy()
        self._before.begin(whole=train.terms * self._row_length > MANY * len(self._table))
        for chunk in self.rows.chunks(train):
            terms = len(chunk.order)
            self._before.note(chunk)
            loss += self.loop(chunk, rates[done : done + terms])
            done += terms
        check_mapped_files()
        self._last = _LastBurst(train, before_beside)
        # The step changes little within a burst.
        step = float(rates[len(rates) // 2]) if len(rates) else 0.0
        return Trained(_NONE, train.terms, train.terms, loss, step, self._weighed_change(before_beside))

    def memory(self, train: Train | None) -> Floats:
        """Return the parameters; those before the burst ``train`` if its result is not handled yet."""
        last = self._last
        if train is None or last is None or last.train is not train:
            return frozen(pack_state(self.state))
        table = self._before.restored(self._table)
        state = table.reshape(self.state[0].shape), last.before_beside.reshape(self.state[1].shape).copy()
        if train.received is not None:
            add_change(state, train.received, -1.0)
        return frozen(pack_state(state))

    def remember(self, memory: Floats) -> None:
        """Continue from parameters that ``memory`` returned."""
        self._load(memory)

    def _load(self, values: Floats) -> None:
        unpack_state(values, self.state)

    def _weighed_change(self, before_beside: Floats) -> Vector:
        """Return the weighed change of the touched parameters, and continue from these."""
        table, before = self._table, self._before
        (many, width), shares = table.shape, self._shares
        weighed = shares.level_of, shares.shift, shares.shares, shares.fixed
        groups = many if before.whole else before.count
        change = np.empty((1 + groups, width), np.float32)
        if before.whole:
            weigh_all_changes(table, before.values, *weighed, change[1:])
        else:
            weigh_changes(table, before.features, before.values, *weighed, change[1:])
        change[0] = (self._beside - before_beside) * self._shares.beside
        self._beside[:] = before_beside + change[0]
        values = frozen(change.reshape(-1))
        if before.whole:  # in the order of ``pack_state`` already
            return values
        indices = np.empty(1 + groups, INDEX)
        indices[0], indices[1:] = 0, before.features
        indices[1:] += 1
        return compact(SparseDelta(frozen(indices), values, width * (1 + many), width))


@dataclass(frozen=True, slots=True, eq=False)
class _LastBurst:
    """The last burst, and the parameters of the intercepts before it."""

    train: Train
    before_beside: Floats = field(repr=False)
