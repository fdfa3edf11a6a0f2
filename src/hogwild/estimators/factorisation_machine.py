"""``HogwildFMClassifier`` and ``HogwildFMRegressor``: factorisation machines, plain and field-aware."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, Self, final

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, _fit_context
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from hogwild import strategies
from hogwild.data import open as open_data
from hogwild.data.csr import Array
from hogwild.data.dataset import Dataset
from hogwild.errors import DataError
from hogwild.estimators.inputs import is_source, labels_and_weights, open_source, refuse_labels
from hogwild.estimators.parameter_constraints import processors_left
from hogwild.estimators.sklearn_shuffle import LARGEST_SEED
from hogwild.losses import Loss
from hogwild.models import link_functions
from hogwild.models.factorisation_machine import FactorisationModel
from hogwild.problems.factorisation_base import FactorisationProblem
from hogwild.problems.factorisation_machine import FactorisationMachine
from hogwild.problems.field_aware_fm import FieldAwareFactorisationMachine
from hogwild.problems.label_encoding import LabelEncoding
from hogwild.run import Budget
from hogwild.schedules import named as schedule_named
from hogwild.schedules import with_step
from hogwild.strategies import Hogwild, Serial
from hogwild.training.minimise import minimise

NOT_NEGATIVE = [Interval(Real, 0, None, closed="left")]


class FactorEstimator(BaseEstimator):  # type: ignore[misc]
    """What the two have in common: from checked data to a fitted model, and its scores."""

    _usual_loss: str
    model_: FactorisationModel
    _parameter_constraints: dict[str, Any] = {  # noqa: RUF012  (scikit-learn's name and form)
        "rank": [Interval(Integral, 1, None, closed="left")],
        "loss": [str, Loss, callable, None],
        "fields": [StrOptions({"file"}), "array-like", None],
        "l2": NOT_NEGATIVE,
        "l2_factors": [*NOT_NEGATIVE, None],
        "normalise": ["boolean", None],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "rule": [str, object],
        "schedule": [str, object],
        "step": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither"), None],
        "spread": NOT_NEGATIVE,
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "strategy": [str, object],
        "memory": [str, Integral, None],
    }

    def __init__(
        self, rank: int = 8, *, loss: Any = None, fields: Any = None, l2: float = 0.0, l2_factors: float | None = None,
        normalise: bool | None = None, fit_intercept: bool = True, max_iter: int | None = None, rule: Any = "adagrad",
        schedule: Any = "cosine", step: Any = None, spread: float = 0.1, early_stopping: bool = False,
        validation_fraction: float = 0.1, n_iter_no_change: int = 3, random_state: Any = None,
        n_jobs: int | None = None, strategy: Any = None, memory: int | str | None = None,
    ) -> None:  # fmt: skip
        self.rank = rank
        self.loss = loss
        self.fields = fields
        self.l2 = l2
        self.l2_factors = l2_factors
        self.normalise = normalise
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.rule = rule
        self.schedule = schedule
        self.step = step
        self.spread = spread
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.strategy = strategy
        self.memory = memory

    @abstractmethod
    def _labels(self, data: Dataset) -> LabelEncoding:
        """What is made of the labels of a file."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from all rows. ``X`` may be a file or an open data set, which has labels and weights of its own."""
        if is_source(X):
            data = open_source(X, y, sample_weight, self.memory)
            self.n_features_in_ = data.n_features
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            labels = self._labels(data)
        else:
            X, y = validate_data(self, X, y, **self._arrays(), y_numeric=isinstance(self, RegressorMixin))
            if sample_weight is not None:
                sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float32)
            numbers, labels = self._encoded(y)
            data = open_data(X, numbers, sample_weight)
        return self._fitted(data, labels)

    @abstractmethod
    def _encoded(self, y: Array) -> tuple[Array, LabelEncoding]:
        """The labels as numbers, and what is made of those."""

    def _fitted(self, data: Dataset, labels: LabelEncoding) -> Self:
        seed = int(check_random_state(self.random_state).randint(LARGEST_SEED))
        train, held_out = data.split(self.validation_fraction, seed) if self.early_stopping else (data, None)
        schedule = self.schedule if self.step is None else with_step(schedule_named(self.schedule), self.step)
        run = minimise(
            self._problem(train, labels, seed), self.rule, schedule, self._strategy(),
            budget=Budget(self.max_iter, patience=self.n_iter_no_change if self.early_stopping else None),
            test=held_out, seed=seed, evaluate_every_epoch=self.early_stopping,
        )  # fmt: skip
        if run.stop_reason == "interrupted":
            raise KeyboardInterrupt
        self.model_, self.n_iter_ = run.model, run.history[-1]["epoch"]
        return self

    def _problem(self, data: Dataset, labels: LabelEncoding, seed: int) -> FactorisationProblem:
        options: dict[str, Any] = {
            "rank": int(self.rank), "l2": self.l2, "intercept": self.fit_intercept,
            "spread": self.spread, "seed": seed, "labels": labels,
        }  # fmt: skip
        loss = self._usual_loss if self.loss is None else self.loss
        unless_usual = {"normalise": self.normalise, "l2_factors": self.l2_factors}
        options |= {name: value for name, value in unless_usual.items() if value is not None}
        if self.fields is None:
            return FactorisationMachine(data, loss, **options)
        fields = None if isinstance(self.fields, str) else self.fields
        return FieldAwareFactorisationMachine(data, loss, fields=fields, **options)

    def _strategy(self) -> Any:
        workers = processors_left(self.n_jobs)
        if self.strategy is None:
            return Serial() if workers == 1 else Hogwild(workers)
        return strategies.named(self.strategy, None if self.n_jobs is None or self.strategy == "serial" else workers)

    @property
    def coef_(self) -> Array:
        """The weight of each feature."""
        return self.model_.weights

    @property
    def intercept_(self) -> float:
        """The intercept."""
        return float(self.model_.intercept[0])

    @property
    def factors_(self) -> Array:
        """The factors of each feature; of a field-aware one, for each field of the feature it meets."""
        return self.model_.factors[:, 0] if self.fields is None else self.model_.factors

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self, "model_")
        if is_source(X):
            return self.model_.decide(X if isinstance(X, Dataset) else self.model_.open(X))
        X = validate_data(self, X, **self._arrays(), reset=False)
        return self.model_.decide(X)

    def _labelled(self, X: Any, y: Any, sample_weight: Any) -> tuple[Dataset, Array, Array | None]:
        check_is_fitted(self, "model_")
        refuse_labels(y, sample_weight)
        data = X if isinstance(X, Dataset) else self.model_.open(X, unlabelled=False)
        return data, *labels_and_weights(data)

    @staticmethod
    def _arrays() -> dict[str, Any]:
        return {"accept_sparse": "csr", "accept_large_sparse": True, "dtype": np.float32, "order": "C"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = self.n_jobs not in (None, 1)
        return tags


@final
class HogwildFMClassifier(ClassifierMixin, FactorEstimator):  # type: ignore[misc]
    """Two classes, told apart by features and by pairs of them: a factorisation machine.

    ``rank`` factors for each feature; with ``fields``, the field of each column (or ``"file"`` where ``X`` is a libffm
    file), it is a field-aware one, with so many factors for each field. ``l2`` penalises weights and ``l2_factors``
    factors (see :class:`hogwild.FactorisationMachine`; None: as usual). ``normalise`` scales rows to length one; None:
    with fields.
    ``max_iter`` epochs are made, by default 20, or, with ``early_stopping``, until the loss of ``validation_fraction``
    of the rows has not fallen for ``n_iter_no_change`` epochs. ``rule``, ``schedule``, ``step`` and ``strategy`` are
    those of :func:`hogwild.minimise`; ``n_jobs`` is the number of workers, -1 for all cores. ``loss`` is by default the
    logistic one.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).integers(0, 2, (400, 2)); y = np.where(X[:, 0] == X[:, 1], "same", "other")
    >>> model = HogwildFMClassifier(2, max_iter=50, random_state=0).fit(X, y)
    >>> model.predict([[0, 0], [0, 1]]), model.factors_.shape
    (array(['same', 'other'], dtype='<U5'), (2, 2))
    """

    _usual_loss = "logistic"

    def decision_function(self, X: Any) -> Array:
        """The score of each row: above zero it is of the second class."""
        return self._scores(X)[:, 0]

    def predict(self, X: Any) -> Array:
        """The class of each row."""
        second = (self._scores(X)[:, 0] > 0).astype(int)
        return np.asarray(self.classes_[second])

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class, for losses that have one."""
        scores = self._scores(X)
        return link_functions.probabilities(scores, (0.0, 1.0), self.model_.link, self.model_.loss)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of rows that are put into the right class; a file or data set brings its own labels."""
        if not is_source(X):
            return float(super().score(X, y, sample_weight))
        data, labels, weights = self._labelled(X, y, sample_weight)
        return float(accuracy_score(labels, self.predict(data), sample_weight=weights))

    def _labels(self, data: Dataset) -> LabelEncoding:
        found = data.label_counts()
        if found is None or len(found[0]) != 2:
            raise DataError(
                "there are not two classes of labels", path=data.name, remedy="For numbers use HogwildFMRegressor."
            )
        self.classes_ = found[0]
        return LabelEncoding(self.classes_)

    def _encoded(self, y: Array) -> tuple[Array, LabelEncoding]:
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"The number of classes has to be greater than one; got {len(self.classes_)} class")
        if type_of_target(y, input_name="y", raise_unknown=True) != "binary":
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}. Learn each class against the rest with OneVsRestClassifier."
            )
        return numbers, LabelEncoding(np.array([0.0, 1.0]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@final
class HogwildFMRegressor(RegressorMixin, FactorEstimator):  # type: ignore[misc]
    """Numbers, predicted from features and from pairs of them: a factorisation machine.

    The parameters are those of :class:`HogwildFMClassifier`; ``loss`` is by default the squared one.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((500, 3)); y = X[:, 0] * X[:, 1] - X[:, 2]
    >>> round(HogwildFMRegressor(2, random_state=0).fit(X, y).score(X, y), 2)
    1.0
    """

    _usual_loss = "squared"

    def predict(self, X: Any) -> Array:
        """The number of each row."""
        return link_functions.predictions(self._scores(X), None, self.model_.link)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R^2; a file or data set brings its own labels."""
        if not is_source(X):
            return float(super().score(X, y, sample_weight))
        data, labels, weights = self._labelled(X, y, sample_weight)
        return float(r2_score(labels, self.predict(data), sample_weight=weights))

    def _labels(self, data: Dataset) -> LabelEncoding:
        return LabelEncoding(None)

    def _encoded(self, y: Array) -> tuple[Array, LabelEncoding]:
        return y, LabelEncoding(None)
