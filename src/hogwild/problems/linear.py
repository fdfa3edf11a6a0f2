"""Linear models: the objective, which is the mean loss of weighted sums of features, and a penalty."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Real
from typing import Any, Literal

import numpy as np

from hogwild.data import as_dataset
from hogwild.data.chunks import rows_per_chunk
from hogwild.data.csr import Array, CSRRows
from hogwild.data.dataset import Chunk, Dataset, EpochPlan
from hogwild.data.frequent_first import ranking
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.present_columns import without_absent
from hogwild.data.reader import ReadOptions
from hogwild.data.sampling import RowSampling, Split, feature_visits, row_sampling
from hogwild.data.slices import in_slices
from hogwild.data.subsample import narrowed, subsample
from hogwild.errors import ParameterError
from hogwild.kernels import linear_build, loss_sums
from hogwild.kernels.conflict_counters import ConflictCounters
from hogwild.kernels.sync_policies import new_sync
from hogwild.kernels.work_queue import new_queue, new_tally
from hogwild.keywords import advised
from hogwild.lazy import cached_property
from hogwild.losses import Loss
from hogwild.losses import named as loss_named
from hogwild.models.linear import LinearModel
from hogwild.problems import linear_kernels
from hogwild.problems.dual_ascent import DualAscent
from hogwild.problems.feature_tiers import SAMPLED_ROWS, FeatureTiers, eigenvalues, mean_squares, tiers_of
from hogwild.problems.label_encoding import ClassWeight, LabelEncoding, label_encoding_for
from hogwild.problems.linear_kernels import LinearKernels
from hogwild.problems.model_memory import check_memory
from hogwild.problems.on_gpu import ProblemOnGPU
from hogwild.problems.problem import (
    BoundKernel,
    Defaults,
    Replicas,
    RowProblem,
    State,
    TypicalTerm,
    check_l2,
    default_l2,
    is_strength,
)
from hogwild.problems.standardisation import Standardisation, standardisation_for
from hogwild.registry import flag, invalid_parameter
from hogwild.rules.rule import Rule

MANY_ROWS, ALIKE = 2**14, 16  # rows from which on this number of consecutive updates has one step size
FEW_COLUMNS = 16  # non-zeros of a sample for each column, above which columns that no row has do not matter
MANY_WEIGHTS = 2**16  # from which on compiled code adds up squares; below, NumPy does
# Non-zeros below which rows in any order are read fast enough for a new permutation in each epoch.
NEW_PERMUTATIONS = 2**22
MOST_EPOCHS = 1_000  # of dual coordinate ascent by default, however weak the penalty is
UNBOUNDED = ("perceptron", "poisson")  # losses without a bound of their curvature, or with minima everywhere


@advised(
    penalty="Write l2=1e-5 or l1=1e-5.",
    epochs="minimise takes it: hogwild.minimise(problem, budget=3).",
    step="minimise takes it: hogwild.minimise(problem, schedule=0.1).",
    workers="minimise takes them: hogwild.minimise(problem, strategy=hogwild.Hogwild(workers=4)).",
    rule="minimise takes it: hogwild.minimise(problem, rule='adagrad').",
    seed="minimise takes it: hogwild.minimise(problem, seed=0).",
    test="minimise takes it: hogwild.minimise(problem, test=data).",
    rank="A linear model has none: hogwild.FactorisationMachine(data, loss, rank=8).",
)
class Linear(RowProblem):
    r"""Linear model of sparse or dense rows.

    The objective over weights :math:`w` and intercept :math:`b`, with n rows of weights s, is

    .. math:: \frac1n \sum_i s_i\, \ell(w \cdot x_i + b, y_i) + \lambda_1 \|w\|_1 + \frac{\lambda_2}2 \|w\|_2^2

    ``l2`` alone is scikit-learn's ``alpha``; for ``LogisticRegression`` and ``LinearSVC`` it is ``1 / (C n)``. An
    elastic net of strength ``alpha`` and ``l1_ratio`` is ``l1=alpha*l1_ratio, l2=alpha*(1-l1_ratio)``. The intercept is
    not penalised. As in the Hogwild! paper, each term includes its share of the penalty: 1/d_u for a coordinate u that
    d_u terms have in common. So a term touches no other coordinates than its own.

    Several classes are trained in one pass. With a loss for two classes, each class is trained against the rest, and
    the loss is the sum over the classes. With ``loss="softmax"``, all classes are trained together.

    Dense columns that are far from zero are standardised during training. This changes only the speed of convergence.

    Parameters
    ----------
    source : path, tuple (X, y) or Dataset
        Any source that :func:`hogwild.data.open` accepts: a file, a packed folder, arrays.
    loss : Loss, str or callable, default "logistic"
        Loss of a row; a callable ``loss(score, label)`` returns the loss and its derivative.
    l1 : float, default 0.0
        Strength of the L1 penalty.
    l2 : float or "auto", optional
        Strength of the L2 penalty; 0 is no penalty. Left out, it is ``min(1, s) / n`` for n rows, or 0 if there is an
        L1 penalty. s is the mean square of values other than 0 or, if that is more, the mean squared length of rows
        divided by ``k**2``, where k is 4 for "logistic" and "softmax" and 1 for other losses. ``1 / n`` is the strength
        that LIBLINEAR's and scikit-learn's ``C=1`` and ``Ridge(alpha=1)`` stand for. Rows of length one with many small
        values, such as TF-IDF, have ``1 / (16 n)`` with "logistic". The penalty applies to weights of the columns as
        they are: a column of small values needs a large weight, which is penalised more. "auto" chooses the strength on
        held-out rows, along a path of strengths.
    intercept : bool, default True
        Whether the model has an intercept.
    class_weight : dict or "balanced", optional
        Weights of classes.
    intercept_lr_multiplier : float, default 1.0
        Factor of the intercept's step size.
    intercept_gradient : float, default 0.0
        Constant gradient of the intercept, which adds ``intercept_gradient * b`` to the objective; a one-class SVM
        needs it.
    labels : LabelEncoding, optional
        Encoding of labels; by default the data determines it.
    standardise : bool, default True
        Whether columns that are far from zero are standardised; never without an intercept.
    sampling : {"split", "replacement"} or Weighted, default "split"
        Choice of the rows of an epoch: each row once ("split"), or as many draws with replacement, all rows alike
        ("replacement") or each with a probability of its own (:class:`hogwild.Weighted`).
    compact : bool, default True
        Whether features that no row has are left out of training and of the model, where there are very many of them:
        from 2^24 features on, if those are more than the non-zeros of rows in memory. Predictions do not change.
    label : str, optional
        Name or number (from 1) of the column with the labels, where ``source`` is a table: CSV, JSON lines, Arrow,
        Parquet or a data frame.

    Raises
    ------
    ParameterError
        If a penalty is not a finite number of at least 0, or if the sampling does not suit the data.

    Examples
    --------
    >>> import numpy as np
    >>> problem = Linear((np.array([[0.0, 1.0], [1.0, 0.0]]), [1, -1]), loss="hinge", l2=1e-4)
    >>> problem.n_outputs, problem.labels.classes
    (1, array([-1.,  1.]))

    References
    ----------
    F. Niu, B. Recht, C. Ré and S. J. Wright, "HOGWILD!: A Lock-Free Approach to Parallelizing Stochastic Gradient
    Descent", NIPS 2011.
    """

    n_sums = 6
    labels: LabelEncoding
    l2: float

    def __init__(
        self,
        source: object,
        loss: Loss | str | Callable[[float, float], tuple[float, float]] = "logistic",
        *,
        l1: float = 0.0,
        l2: float | Literal["auto"] | None = None,
        intercept: bool = True,
        class_weight: ClassWeight = None,
        intercept_lr_multiplier: float = 1.0,
        intercept_gradient: float = 0.0,
        labels: LabelEncoding | None = None,
        standardise: bool = True,
        sampling: str | RowSampling = "split",
        compact: bool = True,
        label: str | None = None,
    ) -> None:
        if not is_strength(l1):
            raise invalid_parameter("l1", "a number of at least 0", l1)
        check_l2("l2", l2)
        self.loss, self.l1, self.intercept = loss_named(loss), float(l1), flag("intercept", intercept)
        standardise, compact = flag("standardise", standardise), flag("compact", compact)
        self.class_weight, self.intercept_gradient = class_weight, intercept_gradient
        self.intercept_lr_multiplier = intercept_lr_multiplier
        self.sampling = row_sampling(sampling)
        self.source = as_dataset(source, ReadOptions(label=label))
        if compact and isinstance(self.source, InMemoryDataset):
            self.source = without_absent(self.source)
        self._auto = l2 == "auto"
        self.sampling.chances(self.source)  # Weights that do not fit are refused before anything is computed.
        penalised = self._auto or not l1
        self.l2 = float(l2) if isinstance(l2, Real) else (self._usual_l2 if penalised else 0.0)
        self.labels = labels or label_encoding_for(self.loss, self.source)
        self.standardise = standardise and self.intercept and not intercept_gradient
        # This number of features selects the loop, for a narrow sample as for the whole data.
        self._width = self.source.n_features
        self._has_duals = False  # whether it is trained by dual coordinate ascent

    @cached_property
    def frame(self) -> Standardisation | None:
        """The standardisation of the columns in training; None if they are trained unchanged."""
        return standardisation_for(self.source, scaled=not self.l1) if self.standardise else None

    @cached_property
    def data(self) -> Dataset:
        """The rows, with encoded labels."""
        return self._with_encoded_labels(self.source)

    def typical_first_step(self, alpha: float) -> float:
        """Return a step size of the magnitude of the expected weights (Bottou's heuristic)."""
        typical = np.sqrt(1 / np.sqrt(alpha))
        return float(typical / max(1.0, abs(self.loss(-typical, 1.0)[1])))

    @property
    def penalty_strength(self) -> float:
        """The strength of L2, or of L1 if there is no L2."""
        return self.l2 or self.l1

    @property
    def n_outputs(self) -> int:
        """The number of scores of a row."""
        return self.labels.outputs

    def encoded(self, data: Dataset) -> Dataset:
        """Return other data of the same kind, with labels encoded like those of ``data``.

        Raises
        ------
        ParameterError
            If the data has more features than the training data.
        """
        columns = self.source.columns
        if columns is not None and data.columns is None and data.n_features <= columns.features:
            data = data.with_rows(columns.renumber)
        elif data.columns is not columns or data.n_features > self.source.n_features:
            raise ParameterError(
                f"{data.name} has {data.all_features:,} features, {self.source.name} has "
                f"{self.source.all_features:,}, or other ones of them. "
                "Open it with features= and extra='ignore' to leave out what the model does not know."
            )
        return self._with_encoded_labels(data)

    def _with_encoded_labels(self, data: Dataset) -> Dataset:
        known = data.with_labels(partial(self.labels.encode, name=data.name))
        return known if self.frame is None else known.with_rows(self.frame.rows)

    def for_rule(self, rule: Rule) -> Linear:
        """Return this problem for a rule; columns stay unchanged if the rule's parameters cannot be transformed."""
        if not rule.has_duals and (rule.position_columns or self.frame is None):
            return self
        other = self._with(self.source, None)
        other.sampling, other._auto, other._has_duals = self.sampling, self._auto, rule.has_duals
        if self.frame is None:
            other.data, other._dual_ascent = self.data, self._dual_ascent
        return other

    @property
    def defaults(self) -> Defaults:
        """The rule, the schedule, the step size and the epochs where the user gives none."""
        if self._has_duals and self.suits_duals and self._dual_ascent.usual_epochs is not None:
            return Defaults(epochs=min(MOST_EPOCHS, self._dual_ascent.usual_epochs))
        return super().defaults

    @property
    def training(self) -> Dataset:
        """The rows, in epochs that draw them as the sampling says."""
        return self._for_duals if self._has_duals else super().training

    @cached_property
    def _for_duals(self) -> InMemoryDataset:
        """The rows in memory; dual coordinate ascent converges faster along independent permutations of them."""
        found = self.data.at_once()
        if not isinstance(found, InMemoryDataset):
            raise ParameterError(
                f"{self.source.name} is larger than memory, and the rule 'sdca' needs all rows in memory: use another "
                "rule, such as 'adagrad'."
            )
        return found.permuted_anew() if found.nonzeros < NEW_PERMUTATIONS else found

    def to_training_space(self, state: State, rule: Rule) -> State:
        """Convert the model's parameters to those of standardised columns."""
        return state if self.frame is None else self.frame.to_training_space(state, rule.position_columns)

    def from_training_space(self, state: State, rule: Rule) -> State:
        """Convert the parameters of standardised columns to those of the model."""
        # A state without the rule's columns has one column, the value.
        kept = tuple(column for column in rule.position_columns if column < state[0].shape[1])
        return state if self.frame is None else self.frame.from_training_space(state, kept)

    def start(self, rule: Rule) -> State:
        """Return weights and intercept of zero, with initial state of the rule."""
        row = np.array(rule.initial, rule.precision)
        beside = np.array(rule.initial_intercept, rule.intercept_precision)
        check_memory(self.source, self.n_outputs, row.nbytes)
        weights = np.tile(row, (self.source.n_features * self.n_outputs, 1))
        if self._layout == "dense" and self.n_outputs == 1 and not rule.single_worker:
            # Columns are contiguous, so that vector instructions step several weights at once.
            weights = np.asfortranarray(weights)
        state = weights, np.tile(beside, (self.n_outputs, 1))
        return (*state, np.zeros((len(self._for_duals.rows), 2), np.float32)) if rule.has_duals else state

    def touch_rates(self) -> tuple[Array, ...]:
        """Return the share of the rows that have each feature, and 1 for the intercept, which every row changes."""
        visits = feature_visits(self.source, self.sampling.chances(self.source))
        return visits / max(1, self.source.n_rows), np.ones(1)

    def typical_term(self) -> TypicalTerm | None:
        """Return a typical row; None if the curvature of the loss has no bound, or is not known."""
        if not self.loss.ours or self.loss.name in UNBOUNDED:
            return None
        few = subsample(self.data, SAMPLED_ROWS).rows
        return TypicalTerm(self._largest_curvature(few), self.loss(0.0, 1.0)[1] ** 2, mean_squares(few))

    @property
    def has_sparse_terms(self) -> bool:
        """Whether a term changes only the weights of its row's features, and the intercepts."""
        return self._layout != "dense" and self.frame is None

    @property
    def steps_each_coordinate_once(self) -> bool:
        """Whether all that a term changes are coordinates, each by one step of the rule."""
        return True

    @cached_property
    def _tiers(self) -> FeatureTiers | None:
        """Tiers of features with the curvature of the objective along them; None for dense rows."""
        if not self.has_sparse_terms:
            return None
        found, bounds = ranking(self.source.frequencies()), tiers_of(self.source.n_features)
        few = subsample(self.source, SAMPLED_ROWS).rows
        return FeatureTiers(found, bounds, self._largest_curvature(few) * eigenvalues(few, found.ranks, bounds))

    def renumbered(self, seed: int, epochs: float) -> tuple[Linear, Array] | None:
        """Return the problem on a copy of its rows in which features are numbered by frequency, and their order.

        Features that no row has are left out.
        """
        if not (self.has_sparse_terms and isinstance(self.source, InMemoryDataset) and self.sampling == Split()):
            return None
        counts = self.source.frequencies()
        found, present = ranking(counts), max(1, int(np.count_nonzero(counts)))
        copied = self.source.renumbered(seed, epochs, found.ranks, present)
        if copied is None:
            return None
        other = self._with(copied, None)
        other._class_weights = self._class_weights
        return other, found.features[:present]

    def on_gpu(self, rule: Rule, in_step: bool = False) -> ProblemOnGPU | None:
        """Return the kernels of this problem and a rule on a GPU; None where there are none."""
        if rule.has_duals or rule.single_worker or rule.step_size != "scheduled" or (in_step and self.n_outputs > 1):
            return None
        from hogwild.problems.coordinate_table import CoordinateTable
        from hogwild.problems.linear_classes_on_gpu import LinearClassesOnGPU
        from hogwild.problems.linear_on_gpu import LinearOnGPU

        table = CoordinateTable(self._kernels, rule, lambda: self._curvatures, in_step)
        return LinearClassesOnGPU(table) if self.n_outputs > 1 else LinearOnGPU(table, self.labels.classes is not None)

    def _largest_curvature(self, few: CSRRows) -> float:
        """Return the largest curvature of the loss of a row, with its weight, by its score."""
        heaviest = float(few.weights.max()) if few.weights.size else 1.0
        return self.loss.curvature * heaviest * float(self._class_weights.max(initial=1.0))

    @cached_property
    def _curvatures(self) -> tuple[Array, float]:
        """The largest curvature of the objective along the features of each feature's tier, and of a row's loss."""
        tiers, few = self._tiers, subsample(self.data, SAMPLED_ROWS).rows
        largest = self._largest_curvature(few)
        if tiers is not None:
            tier = np.searchsorted(tiers.bounds, tiers.ranking.ranks, side="right") - 1
            return tiers.curvatures.astype(np.float32)[tier], largest
        features = self.source.n_features
        found = eigenvalues(few, np.arange(features, dtype=np.uint32), np.array([0, features]))
        return np.full(features, largest * found[0], np.float32), largest

    def sync_buffer(self, access: str) -> Array:
        """Return a lock per feature and one for the intercept, or the turns of workers."""
        return new_sync(access, self.source.n_features + 1)

    @property
    def counts_conflicts(self) -> bool:
        """Whether conflicts of workers can be counted, by ``counters`` that :meth:`kernel` takes."""
        return self.n_outputs == 1

    def kernel(
        self, rule: Rule, access: str, workers: int, alone: bool | None = None, counters: ConflictCounters | None = None
    ) -> BoundKernel:
        """Return the compiled inner loop for a rule and an access policy; with ``counters``, it counts conflicts.

        A worker that is ``alone`` with the parameters need not distribute L2 over the terms. With a rule that moves all
        coordinates by the same multiple, L2 is a common factor of all weights. A single worker is alone by default.

        Raises
        ------
        ParameterError
            If the rule does not suit the loss or the number of outputs.
        """
        if rule.has_duals:
            return self._dual_ascent.kernel()
        return self._kernels.descent(rule, access, workers, alone, counters)

    def hot_replicas(self, rule: Rule, rows: int | str, workers: int) -> Replicas | None:
        """Return replicas of the hot coordinates for each worker, merged every ``rows`` rows.

        None where they do not pay.
        """
        if rule.has_duals:
            return self._dual_ascent.replicas(workers) if rows == "auto" else None
        return self._kernels.replicas(rule, rows, workers)

    def max_workers(self, rule: Rule, workers: int) -> int:
        """Return the number of workers, of at most ``workers``, above which they would delay each other."""
        return self._dual_ascent.max_workers(workers) if rule.has_duals else self._kernels.max_workers(rule, workers)

    @cached_property
    def _dual_ascent(self) -> DualAscent:
        return DualAscent(self.loss, self.l2, self.intercept, self._class_weights, self._layout, self.source)

    @property
    def suits_duals(self) -> bool:
        """Whether dual coordinate ascent can minimise the objective."""
        plain = self.n_outputs == 1 and not self.l1 and not self.intercept_gradient and self.sampling == Split()
        return plain and self.l2 > 0

    @property
    def prefers_duals(self) -> bool:
        """Whether dual coordinate ascent is the fastest rule."""
        known = self.loss.ours and not self.source.bounded and self.loss.name not in UNBOUNDED
        return known and self.suits_duals and self._dual_ascent.is_fastest

    @property
    def _kernels(self) -> LinearKernels:
        return LinearKernels(
            loss=self.loss,
            outputs=self.n_outputs,
            l1=self.l1,
            l2=self.l2,
            shares=lambda: self._shares,
            intercept=self.intercept,
            intercept_lr_multiplier=self.intercept_lr_multiplier,
            intercept_gradient=self.intercept_gradient,
            class_weights=self._class_weights,
            layout=self._layout,
            features=self._width,
            few_features=self._few,
            standardised=self.frame is not None,
            source=self.source,
            # Both have the same columns; ``source`` has its frequencies stored.
            trained=self.source if self.frame is None else self.data,
        )

    @property
    def updates_per_step(self) -> int:
        """The number of consecutive updates with one step size; for many rows, schedules would take long."""
        return 1 if self.source.n_rows < MANY_ROWS else ALIKE

    def measure(self, chunk: Chunk, state: State) -> Array:
        """Return sums over a chunk: loss, weight, hits or squared error, labels, squared labels, rows."""
        sums, starts = np.zeros((1, self.n_sums)), np.array([0, len(chunk.order)])
        self.evaluate_parts(EpochPlan(chunk.rows, chunk.order, starts), new_queue(), new_tally(), sums, state)
        measured: Array = sums[0]
        return measured

    def evaluate_parts(self, whole: EpochPlan, queue: Array, tally: Array, sums: Array, state: State) -> None:
        """Evaluate parts of an epoch until none is left to claim, and write one row of ``sums`` for each."""
        kernel, parameters = linear_build.scoring(whole.rows.layout), linear_build.scoring_parameters(*state[:2])
        outputs = self.n_outputs
        losses = linear_kernels.losses(self.loss, outputs, self.labels.classes is not None)
        loss_sums.evaluate_parts(
            kernel, whole, queue, tally, sums, parameters, outputs, losses, self._class_weights, self.loss.parameter
        )

    def metrics(self, sums: Array) -> dict[str, float]:
        """Return the mean loss, and the accuracy or R^2."""
        total, weight, score, label, square, rows = (float(s) for s in sums)
        found = {"loss": total / rows}
        if self.labels.classes is not None:
            return found | {"accuracy": score / weight if weight else 0.0}
        spread = square - label * label / weight if weight else 0.0
        return found | {"r2": 1 - score / spread if spread > 0 else 0.0}

    def slopes(self, scores: Array, labels: Array) -> tuple[Array, Array]:
        """Return the loss of each row for given scores and encoded labels, and its derivative by each score.

        The result includes the weights of classes. The caller has to apply the weights of rows.
        """
        costs, slopes = np.empty(len(scores)), np.empty(scores.shape)
        kernel = linear_kernels.slopes(self.loss, self.n_outputs)
        kernel(scores, labels, float(self.loss.parameter), self._class_weights, costs, slopes)
        return costs, slopes

    def penalty(self, state: State) -> float:
        """Return the penalty, which the objective adds to the mean loss."""
        linear = self.intercept_gradient * float(state[1][:, 0].sum()) if self.intercept_gradient else 0.0
        if not self.l1 and not self.l2:
            return linear
        values = state[0][:, :1]
        values = values if self.frame is None else self.frame.unscaled(values)
        # The threads of a BLAS keep spinning on the workers' cores after a call such as ``w @ w``.
        if len(values) > MANY_WEIGHTS:
            sums = in_slices(len(values), lambda part: linear_build.sums_of(values[part]))
            sizes, squares = (float(sum(found)) for found in zip(*sums, strict=True))
        else:
            w = values.ravel().astype(np.float64)
            sizes, squares = float(np.abs(w).sum()) if self.l1 else 0.0, float(np.square(w).sum())
        return self.l1 * sizes + self.l2 / 2 * squares + linear

    def sample(self, rows: int, seed: int, narrow: bool = False) -> Linear:
        """Return the same problem on at most ``rows`` rows, for trials.

        ``narrow`` drops the columns that no row has.
        """
        taken = subsample(self.sampling.for_trials(self.source), rows, seed)
        # Few columns are copied sooner than they are numbered anew.
        narrow = narrow and self.frame is None and taken.n_features > taken.nonzeros // FEW_COLUMNS
        other = self._with(narrowed(taken) if narrow else taken, self.frame)
        other._class_weights, other._width = self._class_weights, self._width
        return other

    @cached_property
    def _usual_l2(self) -> float:
        return default_l2(self.source, self.loss)

    @property
    def searches_penalty(self) -> bool:
        """Whether the strength of the L2 penalty is to be chosen on held-out rows."""
        return self._auto

    @property
    def penalties(self) -> dict[str, float]:
        """The strengths of the penalties."""
        return {"l1": self.l1, "l2": self.l2}

    @property
    def penalises_all_weights(self) -> bool:
        """Whether the objective contains the squares of all weights."""
        return self.l2 > 0

    def with_penalty(self, times: float) -> Linear:
        """Return the same problem with ``times`` the default L2 penalty."""
        other = copy.copy(self)
        other._auto, other.l2 = False, times * self._usual_l2
        other.__dict__.pop("_dual_ascent", None)  # It depends on the strength.
        return other

    def split(self, fraction: float, seed: int) -> tuple[Linear, Dataset]:
        """Return the same problem on the other rows, and the held-out ``fraction`` of the rows."""
        rows, held_out = self.source.split(fraction, seed)
        return self._with(rows, self.frame), held_out

    def _with(self, source: Dataset, frame: Standardisation | None) -> Linear:
        other = Linear(
            source, self.loss, l1=self.l1, l2=self.l2, intercept=self.intercept, class_weight=self.class_weight,
            intercept_lr_multiplier=self.intercept_lr_multiplier, intercept_gradient=self.intercept_gradient,
            labels=self.labels, compact=False,
        )  # fmt: skip
        other.frame, other._few = frame, self._few
        return other

    def model(self, values: State, training: Mapping[str, Any]) -> LinearModel:
        """Return the model of a run: the parameters, and all that predictions need."""
        weights, intercept = values
        return LinearModel(
            weights.reshape(self.source.n_features, self.n_outputs),
            intercept.reshape(self.n_outputs),
            str(self.loss),
            None if self.labels.classes is None else tuple(float(c) for c in self.labels.classes),
            self.loss.link,
            self.source.reading,
            training,
            self.source.columns,
        )

    def describe(self) -> dict[str, Any]:
        """Return the problem's parameters, for records."""
        return {
            "problem": "linear",
            "loss": str(self.loss),
            "l1": self.l1,
            "l2": self.l2,
            "intercept": self.intercept,
            "intercept_lr_multiplier": self.intercept_lr_multiplier,
            "intercept_gradient": self.intercept_gradient,
            "standardise": self.frame is not None,
            "class_weight": self.class_weight if isinstance(self.class_weight, str) else dict(self.class_weight or {}),
            "classes": self.labels.describe(),
            "rows": self.source.n_rows,
            "features": self.source.all_features,
            "data": self.source.fingerprint,
            **self.describe_sampling(),
        }

    @cached_property
    def _shares(self) -> Array:
        # Every row has every column. The penalty applies to the weight of the unscaled column.
        if self.frame is not None:
            return np.asarray(self.frame.scale**2, np.float32)
        visits = feature_visits(self.source, self.sampling.chances(self.source))
        shares = np.empty(len(visits), np.float32)
        linear_build.write_shares(visits, self.source.n_rows, shares)
        return shares

    @cached_property
    def _class_weights(self) -> Array:
        return self.labels.weights(self.class_weight, self.source)

    @cached_property
    def _layout(self) -> str:
        layout: str = self.data.here().in_order()[0].rows.layout
        return layout

    @cached_property
    def _few(self) -> bool:
        """Whether the multiplication of all weights by a factor after each chunk costs almost nothing."""
        rows = rows_per_chunk(self.source.n_rows, self.source.nonzeros)
        return self.source.n_features * self.source.n_rows <= rows * self.source.nonzeros
