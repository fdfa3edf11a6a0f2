"""What factorisation machines have in common: weights, an intercept, rows of factors, and a loss of one score."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from hogwild.data import as_dataset
from hogwild.data.csr import Array
from hogwild.data.dataset import Chunk, Dataset, EpochPlan
from hogwild.data.subsample import subsample
from hogwild.errors import DataError, ParameterError
from hogwild.kernels import factorisation_machine_build
from hogwild.kernels.linear import ALL_ROWS, FLUSH_ROWS
from hogwild.kernels.sync_policies import new_sync
from hogwild.kernels.work_queue import new_queue, new_tally
from hogwild.losses import Loss
from hogwild.losses import named as loss_named
from hogwild.models.factorisation_machine import FactorisationModel
from hogwild.problems.bound_kernel import QueueKernel, RangeKernel
from hogwild.problems.label_encoding import ClassWeight, LabelEncoding, label_encoding_for
from hogwild.problems.memory_check import check_memory
from hogwild.problems.problem import BoundKernel, Defaults, RowProblem, State
from hogwild.registry import invalid_parameter
from hogwild.rules.rule import Rule

NEAR = 2**20  # bytes of factors that are as good as in a core's cache, and among which workers always meet
STEP, EPOCHS = 0.1, 20  # as usual
LINE = 64  # bytes of a cache line

OwnLoss = Callable[[float, float], tuple[float, float]]


class FactorisationProblem(RowProblem):
    """A model with factors. How features meet in them is for the two final classes to say."""

    kind: ClassVar[str]  # of pairs, as the kernels call them
    name: ClassVar[str]  # as models and the command line have it
    vector: ClassVar[int]  # factors that are stepped at once; a row has whole vectors of them

    n_sums = 6
    labels: LabelEncoding

    def __init__(
        self,
        source: Any,
        loss: Loss | str | OwnLoss,
        *,
        rank: int,
        l2: float,
        l2_factors: float,
        intercept: bool,
        normalise: bool,
        class_weight: ClassWeight,
        spread: float,
        seed: int,
        labels: LabelEncoding | None,
    ) -> None:
        for name, strength in (("l2", l2), ("l2_factors", l2_factors), ("spread", spread)):
            if not _is_strength(strength):
                raise invalid_parameter(name, "a number of at least 0", strength)
        if not isinstance(rank, int) or isinstance(rank, bool) or rank < 1:
            raise invalid_parameter("rank", "a positive integer", rank)
        self.loss, self.l2, self.l2_factors, self.intercept = loss_named(loss), float(l2), float(l2_factors), intercept
        self.rank, self.normalise, self.class_weight = rank, normalise, class_weight
        self.spread, self.seed = float(spread), seed
        self.source = as_dataset(source)
        self.labels = labels or label_encoding_for(self.loss, self.source)
        if self.labels.outputs > 1:
            raise DataError(
                f"there are {self.labels.outputs:,} classes, and a factorisation machine tells two apart",
                path=self.source.name,
                remedy="Learn each against the rest, for example with scikit-learn's OneVsRestClassifier.",
            )

    # What the two kinds differ in

    @property
    @abstractmethod
    def rows_each(self) -> int:
        """How many rows of factors a feature has."""

    @property
    @abstractmethod
    def _fields(self) -> Array:
        """Of which field each feature is, as the kernels want it."""

    @abstractmethod
    def _visits(self) -> Array:
        """In which share of the terms each row of factors is met."""

    @abstractmethod
    def _with(self, source: Any) -> FactorisationProblem:
        """The same problem on other rows, their labels encoded alike."""

    # What training asks

    @property
    def defaults(self) -> Defaults:
        """Steps that learn what rows have in common: those that fit the rows best learn them by heart.

        Numbers to predict may be of any size, and so the steps to them.
        """
        return Defaults("adagrad", "cosine", STEP if self.labels.classes is not None else "auto", EPOCHS)

    @property
    @abstractmethod
    def work(self) -> int:
        """How many multiplications an epoch takes, about."""

    @cached_property
    def data(self) -> Dataset:
        """The rows, their labels encoded."""
        return self.encoded(self.source)

    @property
    def n_outputs(self) -> int:
        """How many scores the model gives a row."""
        return 1

    @property
    def padded(self) -> int:
        """How many numbers a row of factors has: whole vectors, the last of them filled up with zeros that stay."""
        return -(-self.rank // self.vector) * self.vector

    def encoded(self, data: Dataset) -> Dataset:
        """Other data of the same kind, its labels encoded like those of :attr:`data`."""
        if data.n_features > self.source.n_features:
            raise ParameterError(
                f"{data.name} has {data.n_features:,} features, {self.source.name} has {self.source.n_features:,}. "
                "Open it with features= and extra='ignore' to leave out what the model does not know."
            )
        return data.with_labels(partial(self.labels.encode, name=data.name))

    def for_rule(self, rule: Rule) -> FactorisationProblem:
        """This problem, if the rule goes with it."""
        if rule.single_worker or rule.step_size != "scheduled":
            raise ParameterError(
                f"{type(rule).__name__} is for linear models. For factors use 'adagrad', 'ftrl', 'sgd' or 'adam'."
            )
        return self

    def start(self, rule: Rule) -> State:
        """Weights and intercept at zero, small random factors, with fresh memory for the rule.

        At zero all factors would stay there: what moves one is the others.
        """
        row = np.array(rule.initial, np.float32)
        features, each = self.source.n_features, self.rows_each * self.padded
        check_memory(self.source, 1 + each, row.nbytes)
        factors = _aligned(features * each, len(row))
        factors[:] = row
        random = np.random.default_rng([self.seed, features, self.rows_each])
        drawn = self.spread * random.standard_normal((features * self.rows_each, self.rank), np.float32)
        for column in rule.position_columns:
            factors[:, column].reshape(-1, self.padded)[:, : self.rank] = drawn
        return np.tile(row, (features, 1)), np.tile(row, (1, 1)), factors

    def sync_buffer(self, access: str) -> Array:
        """A lock per feature and one for the intercept, or the turns of workers."""
        return new_sync(access, self.source.n_features + 1)

    def kernel(self, rule: Rule, access: str, workers: int, alone: bool | None = None) -> BoundKernel:
        """The compiled inner loop for a rule and a way of sharing."""
        penalised = self.l2 > 0, self.l2_factors > 0
        kernel = factorisation_machine_build.descend(
            self.kind, self._layout, access, rule.step, rule.skips_zero_gradient, penalised, self.normalise,
            self.loss.function, self.loss.ours, len(rule.initial), self._is_far(rule),
        )  # fmt: skip
        constants = tuple(np.float32(c) for c in rule.constants)
        # With locks and turns no update may be lost or damped, so each is merged at once.
        patience, least = (FLUSH_ROWS, np.float32(1 / workers)) if access == "free" else (1, np.float32(1))
        patience = patience if workers > 1 else ALL_ROWS
        given = (
            self._fields, self.padded, self.intercept, self._shares, np.float32(self.l2), np.float32(self.l2_factors),
            self._class_weights, float(self.loss.parameter), constants,
        )  # fmt: skip
        stiffness = np.float32(self.loss.curvature)

        def rest(state: State, sync: Array) -> tuple[Any, ...]:
            return *state, *given, sync, patience, least, stiffness

        return RangeKernel(kernel, rest, turns=True) if access == "turns" else QueueKernel(kernel, rest)

    def always_contended(self, rule: Rule) -> bool:
        """Whether workers would always write to the same few places."""
        return self._size(rule) < NEAR

    def _is_far(self, rule: Rule) -> bool:
        """Whether the parameters are too many for a core's cache."""
        return self._size(rule) > NEAR

    def _size(self, rule: Rule) -> int:
        return 4 * len(rule.initial) * self.source.n_features * self.rows_each * self.padded

    # How good it is

    def measure(self, chunk: Chunk, state: State) -> Array:
        """Sums over a chunk: loss, weight, hits or squared error, labels, squared labels, rows."""
        sums, starts = np.zeros((1, self.n_sums)), np.array([0, len(chunk.order)])
        self.evaluate_parts(EpochPlan(chunk.rows, chunk.order, starts), new_queue(), new_tally(), sums, state)
        measured: Array = sums[0]
        return measured

    def evaluate_parts(self, whole: EpochPlan, board: Array, tally: Array, sums: Array, state: State) -> None:
        """The same over parts of a walk, as long as there are some to claim: a row of ``sums`` for each."""
        values = state[2][:, :1]
        rest = *state[:2], values, self._fields, self.padded, self._class_weights, float(self.loss.parameter)
        kernel = factorisation_machine_build.evaluate(
            self.kind, whole.rows.layout, self.normalise, self._score, self.loss.function, self.loss.ours
        )
        kernel(board, whole.starts, tally, whole.rows.arrays, whole.order, rest, sums)

    def metrics(self, sums: Array) -> dict[str, float]:
        """The mean loss, and the accuracy or R^2."""
        total, weight, score, label, square, rows = (float(s) for s in sums)
        found = {"loss": total / rows}
        if self.labels.classes is not None:
            return found | {"accuracy": score / weight if weight else 0.0}
        spread = square - label * label / weight if weight else 0.0
        return found | {"r2": 1 - score / spread if spread > 0 else 0.0}

    def penalty(self, state: State) -> float:
        """What the objective has besides the mean loss."""
        found = 0.0
        if self.l2:
            found += self.l2 / 2 * float(np.square(state[0][:, 0], dtype=np.float64).sum())
        if self.l2_factors:
            squares = np.square(state[2][:, 0].reshape(-1, self.padded), dtype=np.float64).sum(axis=1)
            found += self.l2_factors / 2 * float((self._visited * squares).sum())
        return found

    def sample(self, rows: int, seed: int, narrow: bool = False) -> FactorisationProblem:
        """The same problem on few rows, for trials."""
        other = self._with(subsample(self.source, rows, seed))
        other._class_weights, other._shares = self._class_weights, self._shares
        return other

    def model(self, values: State, training: Mapping[str, Any]) -> FactorisationModel:
        """What is kept of a run: the parameters, and what is needed to use them."""
        weights, intercept, factors = values
        table = self.source.table
        rows = factors[:, 0].reshape(self.source.n_features, self.rows_each, self.padded)[:, :, : self.rank]
        return FactorisationModel(
            weights[:, 0].copy(),
            intercept[:, 0].copy(),
            rows.copy(),
            str(self.loss),
            None if self.labels.classes is None else tuple(float(c) for c in self.labels.classes),
            self.loss.link,
            self.normalise,
            self._fields[:-1] if self._fields.size else None,
            None if table is None else table.keys,
            {"base": self.source.base},
            training,
        )

    def describe(self) -> dict[str, Any]:
        """What was asked, for records."""
        return {
            "problem": self.name,
            "loss": str(self.loss),
            "rank": self.rank,
            "l2": self.l2,
            "l2_factors": self.l2_factors,
            "intercept": self.intercept,
            "normalise": self.normalise,
            "spread": self.spread,
            "drawn_by": self.seed,
            "class_weight": self.class_weight if isinstance(self.class_weight, str) else dict(self.class_weight or {}),
            "classes": self.labels.describe(),
            "rows": self.source.n_rows,
            "features": self.source.n_features,
            "data": self.source.fingerprint,
        }

    @cached_property
    def _shares(self) -> Array:
        if not self.l2:
            return np.empty(0, np.float32)
        return np.asarray(self.source.n_rows / np.maximum(self.source.frequencies(), 1), np.float32)

    @cached_property
    def _visited(self) -> Array:
        return self._visits()

    @cached_property
    def _class_weights(self) -> Array:
        return self.labels.weights(self.class_weight, self.source)

    @cached_property
    def _layout(self) -> str:
        layout: str = self.data.in_order()[0].rows.layout
        return layout

    @property
    def _score(self) -> str:
        if self.labels.classes is not None:
            return "signs"
        return "exp" if self.loss.link == "exp" else "identity"


def _is_strength(value: Any) -> bool:
    return isinstance(value, Real) and 0 <= float(value) < float("inf")


def _aligned(rows: int, columns: int) -> Array:
    """A table with numbers of a kind side by side, which begins with a cache line."""
    memory = np.empty(rows * columns + LINE // 4, np.float32)
    first = -memory.ctypes.data % LINE // 4
    return memory[first : first + rows * columns].reshape((rows, columns), order="F")
