"""Base of factorisation machines: weights, an intercept, rows of factors, and a loss of one score."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np

from hogwild.data import as_dataset
from hogwild.data.csr import Array, CSRRows
from hogwild.data.dataset import Chunk, Dataset, EpochPlan
from hogwild.data.reader import ReadOptions
from hogwild.data.sampling import RowSampling, feature_visits, row_sampling
from hogwild.data.slices import ENTRIES, copied, in_slices
from hogwild.data.subsample import subsample
from hogwild.errors import DataError, ParameterError
from hogwild.kernels import factorisation_machine_build, loss_sums
from hogwild.kernels.linear import ALL_ROWS, FLUSH_ROWS
from hogwild.kernels.sync_policies import new_sync
from hogwild.kernels.work_queue import new_queue, new_tally
from hogwild.lazy import cached_property
from hogwild.losses import Loss
from hogwild.losses import named as loss_named
from hogwild.models.factorisation_machine import FactorisationModel
from hogwild.problems import linear_kernels
from hogwild.problems.feature_tiers import SAMPLED_ROWS
from hogwild.problems.label_encoding import ClassWeight, LabelEncoding, label_encoding_for
from hogwild.problems.model_memory import check_memory
from hogwild.problems.on_gpu import ProblemOnGPU
from hogwild.problems.problem import (
    BoundKernel,
    Defaults,
    QueueKernel,
    RangeKernel,
    RowProblem,
    State,
    check_l2,
    default_l2,
    is_strength,
)
from hogwild.problems.random_factors import aligned_table, random_factors
from hogwild.registry import flag, invalid_parameter, is_count
from hogwild.rules.rule import Rule

# Bytes of factors that stay in a core's cache, and among which the writes of workers always conflict.
NEAR = 2**20
# Default step size and default number of epochs, the usual values for factorisation machines.
STEP, EPOCHS = 0.1, 20

OwnLoss = Callable[[float, float], tuple[float, float]]


class FactorisationProblem(RowProblem):
    """Model with factors; its two final subclasses define how pairs of features are multiplied."""

    kind: ClassVar[str]  # Kind of feature pairs, by which the kernels are chosen.
    name: ClassVar[str]  # Name in models and on the command line.
    # Number of factors that one vector instruction steps; a row of factors is padded to a multiple of it.
    vector: ClassVar[int]

    n_sums = 6
    labels: LabelEncoding
    l2: float

    def __init__(
        self,
        source: object,
        loss: Loss | str | OwnLoss,
        *,
        rank: int,
        l2: float | Literal["auto"] | None,
        l2_factors: float | None,
        intercept: bool,
        normalise: bool,
        class_weight: ClassWeight,
        spread: float,
        seed: int,
        labels: LabelEncoding | None,
        sampling: str | RowSampling,
        label: str | None = None,
    ) -> None:
        check_l2("l2", l2)
        for name, strength in (("l2_factors", l2_factors), ("spread", spread)):
            if not (is_strength(strength) or (strength is None and name == "l2_factors")):
                raise invalid_parameter(name, "a number of at least 0", strength)
        if not is_count(rank):
            raise invalid_parameter("rank", "a positive integer", rank)
        self.loss, self.intercept = loss_named(loss), flag("intercept", intercept)
        self.rank, self.normalise, self.class_weight = int(rank), flag("normalise", normalise), class_weight
        self.spread, self.seed = float(spread), int(seed)
        self.sampling = row_sampling(sampling)
        self.source = as_dataset(source, ReadOptions(label=label))
        self._auto = l2 == "auto"
        self.sampling.chances(self.source)  # Weights that do not fit are refused before anything is computed.
        self.l2 = float(l2) if isinstance(l2, Real) else self._usual_l2
        self.l2_factors = self._usual_l2_factors if l2_factors is None else float(l2_factors)
        self._l2_factors_given = l2_factors is not None
        self.labels = labels or label_encoding_for(self.loss, self.source)
        if self.labels.outputs > 1:
            raise DataError(
                f"there are {self.labels.outputs:,} classes, and a factorisation machine distinguishes two",
                path=self.source.name,
                remedy="Learn each against the rest, for example with scikit-learn's OneVsRestClassifier.",
            )

    # Penalties

    # Default of ``l2_factors`` times the square root of the number of rows, and the most that it may be. More would
    # keep few rows, whose features are frequent, from showing any interaction.
    factor_penalty: ClassVar[tuple[float, float]]
    warm_starts = False

    @cached_property
    def _usual_l2(self) -> float:
        return default_l2(self.source, self.loss)

    @property
    def _usual_l2_factors(self) -> float:
        scale, most = self.factor_penalty
        return min(most, scale / math.sqrt(max(1, self.source.n_rows)))

    @property
    def searches_penalty(self) -> bool:
        """Whether the strengths of the penalties are to be chosen on held-out rows."""
        return self._auto

    @property
    def penalties(self) -> dict[str, float]:
        """The strengths of the penalties."""
        return {"l2": self.l2, "l2_factors": self.l2_factors}

    def with_penalty(self, times: float) -> Self:
        """Return the same problem with ``times`` the default penalties, except for one on factors that was given."""
        other = copy.copy(self)
        other._auto, other.l2 = False, times * self._usual_l2
        if not self._l2_factors_given:
            other.l2_factors = times * self._usual_l2_factors
        return other

    def split(self, fraction: float, seed: int) -> tuple[Self, Dataset]:
        """Return the same problem on the other rows, and the held-out ``fraction`` of the rows."""
        rows, held_out = self.source.split(fraction, seed)
        other = self._with(rows)
        other._l2_factors_given = self._l2_factors_given
        return other, held_out

    # Differences between the two kinds of machines

    @property
    @abstractmethod
    def rows_each(self) -> int:
        """The number of rows of factors of a feature."""

    @property
    @abstractmethod
    def _fields(self) -> Array:
        """The field of each feature, followed by the number of fields; empty for a machine without fields."""

    @abstractmethod
    def _visits(self) -> Array:
        """Return, for each row of factors, the mean number of times that a term uses it."""

    @abstractmethod
    def _with(self, source: Dataset) -> Self:
        """Return the same problem on other rows, with the same encoding of labels."""

    # Interface for training

    @property
    def defaults(self) -> Defaults:
        """Rule, step size and epochs that generalise well; step sizes that fit the rows best overfit.

        Labels that are numbers may have any magnitude, so their step size is "auto".
        """
        return Defaults("adagrad", STEP if self.labels.classes is not None else "auto", EPOCHS)

    @property
    @abstractmethod
    def work(self) -> int:
        """The approximate number of multiplications of an epoch."""

    @cached_property
    def data(self) -> Dataset:
        """The rows, with encoded labels."""
        return self.encoded(self.source)

    @property
    def n_outputs(self) -> int:
        """The number of scores of a row."""
        return 1

    @property
    def padded(self) -> int:
        """The number of numbers of a row of factors: the rank, padded with constant zeros to whole vectors."""
        return -(-self.rank // self.vector) * self.vector

    def encoded(self, data: Dataset) -> Dataset:
        """Return other data of the same kind, with labels encoded like those of ``data``.

        Raises
        ------
        ParameterError
            If the data has more features than the training data.
        """
        if data.n_features > self.source.n_features:
            raise ParameterError(
                f"{data.name} has {data.n_features:,} features, {self.source.name} has {self.source.n_features:,}. "
                "Open it with features= and extra='ignore' to leave out what the model does not know."
            )
        return data.with_labels(partial(self.labels.encode, name=data.name))

    def for_rule(self, rule: Rule) -> FactorisationProblem:
        """Return this problem if the rule supports it.

        Raises
        ------
        ParameterError
            If the rule is for one worker, or does not follow a schedule.
        """
        if rule.single_worker or rule.step_size != "scheduled":
            raise ParameterError(
                f"{type(rule).__name__} is for linear models. For factors use 'adagrad', 'ftrl', 'sgd' or 'adam'."
            )
        return self

    def start(self, rule: Rule) -> State:
        """Return weights and an intercept of zero, small random factors, and initial state of the rule.

        Factors that start at zero would stay zero, because the gradient of a factor is a sum of others.
        """
        row = np.array(rule.initial, np.float32)
        features, each = self.source.n_features, self.rows_each * self.padded
        check_memory(self.source, 1 + each, row.nbytes)
        factors = aligned_table(features * each, row)
        drawn = random_factors([self.seed, features, self.rows_each], features * self.rows_each, self.rank)

        def place(part: slice) -> None:
            scaled = np.float32(self.spread) * drawn[part]
            for column in rule.position_columns:
                factors[:, column].reshape(-1, self.padded)[part, : self.rank] = scaled

        in_slices(len(drawn), place, max(1, ENTRIES // self.padded))
        return np.tile(row, (features, 1)), np.tile(row, (1, 1)), factors

    def sync_buffer(self, access: str) -> Array:
        """Return a lock per feature and one for the intercept, or the turns of workers."""
        return new_sync(access, self.source.n_features + 1)

    def kernel(self, rule: Rule, access: str, workers: int, alone: bool | None = None) -> BoundKernel:
        """Return the compiled inner loop for a rule and an access policy."""
        penalised = self.l2 > 0, self.l2_factors > 0
        kernel = factorisation_machine_build.descend(
            self.kind, self._layout, access, rule.step, rule.skips_zero_gradient, penalised, self.normalise,
            self.loss.function, self.loss.ours, len(rule.initial), self._is_far(rule),
        )  # fmt: skip
        constants = tuple(np.float32(c) for c in rule.constants)
        # With locks and turns no update may be lost or damped, so each one is merged at once.
        at_once = access in ("locked", "turns")
        flush_rows, least = (1, np.float32(1)) if at_once else (FLUSH_ROWS, np.float32(1 / workers))
        flush_rows = flush_rows if workers > 1 else ALL_ROWS
        given = (
            self._fields, self.padded, self.intercept, self._shares, np.float32(self.l2), np.float32(self.l2_factors),
            self._class_weights, float(self.loss.parameter), constants,
        )  # fmt: skip
        curvature = np.float32(self.loss.curvature)

        def rest(state: State, sync: Array) -> tuple[Any, ...]:
            return *state, *given, sync, flush_rows, least, curvature

        return RangeKernel(kernel, rest, turns=True) if access == "turns" else QueueKernel(kernel, rest)

    def on_gpu(self, rule: Rule, in_step: bool = False) -> ProblemOnGPU | None:
        """Return the kernels of this problem and a rule on a GPU; None in step, for which there are none.

        Raises
        ------
        ParameterError
            If there are more features than a GPU's kernels can number.
        """
        if in_step:
            return None
        if self.source.n_features >= 2**31:
            raise ParameterError(
                f"{self.source.name} has {self.source.n_features:,} features, and a GPU trains factors of fewer than "
                "2^31: hash features into fewer, or use runtime=Threads()."
            )
        from hogwild.problems.factorisation_on_gpu import FactorisationOnGPU
        from hogwild.problems.linear_on_gpu import types_of

        few = self._few_rows
        heaviest = float(few.weights.max()) if few.weights.size else 1.0
        return FactorisationOnGPU(
            self.loss, rule, self._layout, self.source.n_rows, self.source.nonzeros, self.rank, self.padded,
            self._fields, self.l2, self.l2_factors, self._rows_per_visit, self._squares,
            lambda: self._visited, self.intercept,
            self.normalise, self._class_weights, self.labels.classes is not None,
            self.loss.curvature * heaviest * float(self._class_weights.max(initial=1.0)), types_of(self.data),
        )  # fmt: skip

    def max_workers(self, rule: Rule, workers: int) -> int:
        """Return one worker if the factors are so few that the writes of workers always conflict, else ``workers``."""
        return 1 if self._size(rule) < NEAR else workers

    def _is_far(self, rule: Rule) -> bool:
        """Return whether the parameters exceed a core's cache."""
        return self._size(rule) > NEAR

    def _size(self, rule: Rule) -> int:
        return 4 * len(rule.initial) * self.source.n_features * self.rows_each * self.padded

    # Evaluation

    def measure(self, chunk: Chunk, state: State) -> Array:
        """Return sums over a chunk: loss, weight, hits or squared error, labels, squared labels, rows."""
        sums, starts = np.zeros((1, self.n_sums)), np.array([0, len(chunk.order)])
        self.evaluate_parts(EpochPlan(chunk.rows, chunk.order, starts), new_queue(), new_tally(), sums, state)
        measured: Array = sums[0]
        return measured

    def evaluate_parts(self, whole: EpochPlan, queue: Array, tally: Array, sums: Array, state: State) -> None:
        """Evaluate parts of an epoch until none is left to claim, and write one row of ``sums`` for each."""
        kernel = factorisation_machine_build.scoring(self.kind, whole.rows.layout, self.normalise)
        weights, intercept, factors = state
        parameters = factorisation_machine_build.scoring_parameters(
            weights, intercept, factors, self._fields, self.padded
        )
        losses = linear_kernels.losses(self.loss, 1, self.labels.classes is not None)
        loss_sums.evaluate_parts(
            kernel, whole, queue, tally, sums, parameters, 1, losses, self._class_weights, self.loss.parameter
        )

    def metrics(self, sums: Array) -> dict[str, float]:
        """Return the mean loss, and the accuracy or R^2."""
        total, weight, score, label, square, rows = (float(s) for s in sums)
        found = {"loss": total / rows}
        if self.labels.classes is not None:
            return found | {"accuracy": score / weight if weight else 0.0}
        spread = square - label * label / weight if weight else 0.0
        return found | {"r2": 1 - score / spread if spread > 0 else 0.0}

    def penalty(self, state: State) -> float:
        """Return the penalty, which the objective adds to the mean loss."""
        found = 0.0
        if self.l2:
            found += self.l2 / 2 * float(np.square(state[0][:, 0], dtype=np.float64).sum())
        if self.l2_factors:
            factors, squares = state[2][:, 0].reshape(-1, self.padded), np.empty(len(self._visited))

            def add_up(part: slice) -> None:
                np.square(factors[part], dtype=np.float64).sum(axis=1, out=squares[part])

            in_slices(len(squares), add_up, max(1, ENTRIES // self.padded))
            found += self.l2_factors / 2 * float((self._visited * squares).sum())
        return found

    def sample(self, rows: int, seed: int, narrow: bool = False) -> FactorisationProblem:
        """Return the same problem on at most ``rows`` rows, for trials."""
        other = self._with(subsample(self.sampling.for_trials(self.source), rows, seed))
        other._class_weights, other._shares = self._class_weights, self._shares
        return other

    def model(self, values: State, training: Mapping[str, Any]) -> FactorisationModel:
        """Return the model of a run: the parameters, and all that predictions need."""
        weights, intercept, factors = values
        table = self.source.table
        rows = factors[:, 0].reshape(self.source.n_features, self.rows_each, self.padded)[:, :, : self.rank]
        return FactorisationModel(
            weights[:, 0].copy(),
            intercept[:, 0].copy(),
            copied(rows),
            str(self.loss),
            None if self.labels.classes is None else tuple(float(c) for c in self.labels.classes),
            self.loss.link,
            self.normalise,
            self._fields[:-1] if self._fields.size else None,
            None if table is None else table.keys,
            self.source.reading,
            training,
        )

    def describe(self) -> dict[str, Any]:
        """Return the problem's parameters, for records."""
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
            **self.describe_sampling(),
        }

    @cached_property
    def _shares(self) -> Array:
        return self._rows_per_visit if self.l2 else np.empty(0, np.float32)

    @cached_property
    def _rows_per_visit(self) -> Array:
        visits = feature_visits(self.source, self.sampling.chances(self.source))
        return np.asarray(self.source.n_rows / np.where(visits > 0, visits, 1), np.float32)

    @cached_property
    def _few_rows(self) -> CSRRows:
        return subsample(self.data, SAMPLED_ROWS).rows

    @cached_property
    def _squares(self) -> Array:
        """The mean squared value of each feature in the rows that have it, as a few rows show it."""
        few = self._few_rows
        if few.layout == "binary" and not self.normalise:
            return np.ones(self.source.n_features, np.float32)
        lengths, entries = np.diff(few.indptr), slice(int(few.indptr[0]), int(few.indptr[-1]))
        values = few.values[entries] if few.values.size else np.ones(lengths.sum())
        squares, row = np.square(values, dtype=np.float64), np.repeat(np.arange(len(few)), lengths)
        if self.normalise:
            norms = np.bincount(row, squares, minlength=len(few))
            squares = squares / np.where(norms > 0, norms, 1)[row]
        columns = few.indices[entries] if few.indices.size else np.tile(np.arange(few.features), len(few))
        counts = np.bincount(columns, minlength=self.source.n_features)
        sums = np.bincount(columns, squares, minlength=self.source.n_features)
        usual = squares.mean() if squares.size else 1.0
        return np.where(counts > 0, sums / np.maximum(counts, 1), usual).astype(np.float32)

    @cached_property
    def _visited(self) -> Array:
        return self._visits()

    @cached_property
    def _class_weights(self) -> Array:
        return self.labels.weights(self.class_weight, self.source)

    @cached_property
    def _layout(self) -> str:
        layout: str = self.data.here().in_order()[0].rows.layout
        return layout
