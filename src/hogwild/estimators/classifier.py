"""Linear classifier with the interface of scikit-learn's ``SGDClassifier``, trained by several workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.linear_model import SGDClassifier
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted

from hogwild.data.csr import Array
from hogwild.errors import DataError, ParameterError
from hogwild.estimators.inputs import (
    MatrixLike,
    RandomState,
    Reshuffled,
    Rows,
    class_seeds,
    classes_of,
    is_source,
    open_source,
    refuse_other_labels,
)
from hogwild.estimators.linear_base import LinearEstimator, initial
from hogwild.estimators.one_at_a_time import one_at_a_time
from hogwild.estimators.sklearn_parameters import Parts, check_together, constraints, loss_of, warn_deprecated
from hogwild.estimators.task import State, Task
from hogwild.keywords import advised
from hogwild.losses import SOFTMAX, Loss
from hogwild.problems.label_encoding import ClassWeight, LabelEncoding
from hogwild.rules import Rule
from hogwild.strategies import Strategy


def _has_probabilities(self: LinearEstimator) -> bool:
    if loss_of(self._all_params()).link not in ("sigmoid", "huber"):
        raise AttributeError(f"probability estimates are not available for loss={self.loss!r}")
    return True


@advised(
    epochs="Write max_iter=3, with tol=None if it may not end before.",
    step="Write eta0=0.1 with learning_rate='constant', 'invscaling' or 'adaptive'.",
    workers="Write n_jobs=4, or n_jobs=-1 for all cores.",
    penalty="Write alpha=1e-5, with penalty='l2', 'l1' or 'elasticnet'; alpha is 1 / (C * rows).",
    rule="Write rule='adagrad'.",
    seed="Write random_state=0.",
    test="Write early_stopping=True with validation_fraction=0.1.",
    progress="Write verbose=1.",
)
class HogwildClassifier(LinearClassifierMixin, LinearEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Linear classifier (SVM, logistic regression, ...) trained by stochastic gradient descent with several workers.

    The parameters of :class:`sklearn.linear_model.SGDClassifier` have the same meanings and defaults here. With one
    worker a fit is deterministic. ``X`` may also be the path of a file, a packed folder or an open data set, which have
    labels of their own.

    Parameters
    ----------
    loss : str, Loss or callable, default "hinge"
        A loss of ``SGDClassifier``, or "softmax". A function ``(z, y) -> (loss, derivative)`` gets labels -1 and 1.
    penalty : {"l2", "l1", "elasticnet"} or None, default "l2"
        Kind of the penalty on weights.
    alpha : float, default 0.0001
        Strength of the penalty. The schedule "optimal" also depends on ``alpha``.
    l1_ratio : float, default 0.15
        Share of the L1 penalty in "elasticnet", from 0 to 1.
    fit_intercept : bool, default True
        Whether to learn an intercept.
    max_iter : int, default 1000
        Maximum number of epochs of ``fit``.
    tol : float or None, default 1e-3
        Improvement of the monitored value below which an epoch counts as stalled. None runs all ``max_iter`` epochs.
    shuffle : bool, default True
        Whether every epoch visits the rows in a new random order.
    verbose : int, default 0
        With a value other than 0, print one line per epoch.
    epsilon : float, default 0.1
        Width of the losses "huber", "epsilon_insensitive" and "squared_epsilon_insensitive".
    n_jobs : int, optional
        Largest number of workers. None is 1 worker, -1 is one worker per core. They train several classes side by side,
        and share the weights of two as far as that is faster. With shared weights, results differ between runs.
    random_state : int, RandomState or None, default None
        Seed of the order of rows and of the split for early stopping.
    learning_rate : {"optimal", "constant", "invscaling", "adaptive", "pa1", "pa2"}, default "optimal"
        Schedule of the step size. With a ``rule`` such as "adagrad", "optimal" chooses a constant step size by trials.
    eta0 : float, default 0.01
        Initial step size of the schedules other than "optimal".
    power_t : float, default 0.5
        Exponent of the schedule "invscaling". A negative one is deprecated, as in scikit-learn.
    early_stopping : bool, default False
        Whether to stop by the accuracy on held-out rows. Each class against the rest stops by its own accuracy, except
        with a ``rule`` or with "softmax".
    validation_fraction : float, default 0.1
        Share of the rows that early stopping holds out.
    n_iter_no_change : int, default 5
        Number of stalled epochs after which a fit stops.
    class_weight : dict, "balanced" or None, default None
        Weight of each class.
    warm_start : bool, default False
        Whether ``fit`` starts from the parameters of the last fit.
    average : bool or int, default False
        Whether to average iterates. A number is the first update that enters the average.
    strategy : Strategy or str, optional
        Scheme by which workers share the weights. None is lock-free if there are several workers.
    rule : Rule or str, optional
        Update rule, such as "adagrad". None is plain SGD.
    buffer : int or "auto", default "auto"
        Rows between two merges of a worker's hot replica; see :class:`hogwild.Hogwild`.
    memory : int or str, optional
        Maximum resident memory in bytes, or as a string such as "1GiB", when ``X`` is a file.
    identical_to_sklearn : bool, default False
        Whether a single worker makes scikit-learn's updates to the last bit. Otherwise it rounds differently, visits
        the rows of several classes in one order, and takes half the time or less.
    device : {"cpu", "cuda", "auto"}, default "cpu"
        Where the fit runs. On a GPU, thousands of rows are trained at the same time, and ``n_jobs`` has no meaning.
        "auto" takes a GPU if there is one and the data is large.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> model = HogwildClassifier(random_state=0).fit(X, ["no", "no", "yes", "yes"])
    >>> model.predict([[-0.8, -1.0], [3.0, 2.0]])
    array(['no', 'yes'], dtype='<U3')
    """

    _parameter_constraints = constraints(SGDClassifier, "softmax")
    loss_functions = SGDClassifier.loss_functions

    def __init__(
        self, loss: str | Loss | Callable[[float, float], tuple[float, float]] = "hinge", *,
        penalty: str | None = "l2", alpha: float = 0.0001, l1_ratio: float = 0.15, fit_intercept: bool = True,
        max_iter: int = 1000, tol: float | None = 1e-3, shuffle: bool = True, verbose: int = 0, epsilon: float = 0.1,
        n_jobs: int | None = None, random_state: RandomState = None, learning_rate: str = "optimal",
        eta0: float = 0.01, power_t: float = 0.5, early_stopping: bool = False, validation_fraction: float = 0.1,
        n_iter_no_change: int = 5, class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        warm_start: bool = False, average: bool | int = False, strategy: Strategy | str | None = None,
        rule: Rule | str | None = None, buffer: int | str = "auto", memory: int | str | None = None,
        identical_to_sklearn: bool = False, device: str = "cpu",
    ) -> None:  # fmt: skip
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.verbose = verbose
        self.epsilon = epsilon
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.average = average
        self.strategy = strategy
        self.rule = rule
        self.buffer = buffer
        self.memory = memory
        self.identical_to_sklearn = identical_to_sklearn
        self.device = device

    @one_at_a_time
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Rows, y: ArrayLike | None = None, coef_init: MatrixLike | None = None,
        intercept_init: ArrayLike | None = None, sample_weight: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Fit the model to all rows, from zero or, with ``warm_start``, from the parameters of the last fit.

        Parameters
        ----------
        X : array, sparse matrix, path or Dataset
            Rows to fit.
        y : array, optional
            Label of each row. A file or a data set has its own labels. For a file with columns (CSV, JSON lines,
            Parquet) it may be the name of the column with the labels.
        coef_init, intercept_init : array, optional
            Initial weights and intercepts.
        sample_weight : array, optional
            Weight of each row. A file or a data set has its own weights.

        Returns
        -------
        HogwildClassifier
            The fitted estimator itself.

        Raises
        ------
        ValueError
            If parameters contradict each other, or if there are fewer than two classes.
        DataError
            If the labels of a file are numbers rather than classes.
        """
        check_together(self._all_params(), passive_aggressive_loss="hinge")
        warn_deprecated(self._all_params())
        old = (self.coef_, self.intercept_) if self.warm_start and hasattr(self, "coef_") else (None, None)
        for name in ("classes_", "_reading"):
            if hasattr(self, name):
                delattr(self, name)
        if is_source(X):
            data = open_source(X, y, sample_weight, self.memory)
            found = data.label_counts()
            if found is None:
                raise DataError("the labels are numbers, not classes", path=data.name, remedy="Use HogwildRegressor.")
            self._set_classes(classes_of(data, found[0]))
            train, held_out = self._split_dataset(data)
            labels, weight, rows, dtype = (
                LabelEncoding(found[0]),
                self._class_weight_of_source(found[0]),
                data.n_rows,
                np.dtype(np.float32),
            )
        else:
            matrix, targets, weights = self._checked(X, y, sample_weight, reset=True)
            check_classification_targets(targets)
            self._set_classes(np.unique(targets))
            train, held_out = self._data(matrix, targets, weights, self._numbers(targets))
            labels, weight = self._labels(), self._class_weight_of(targets)
            rows, dtype = matrix.shape[0], matrix.dtype
        coef = old[0] if coef_init is None else coef_init
        intercept = old[1] if intercept_init is None else intercept_init
        start = initial(coef, intercept, labels.outputs, self.n_features_in_)
        return self._fitted(Task(train, labels, start, weight, held_out), rows, dtype, partial=False)

    @one_at_a_time
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: MatrixLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Make one epoch over these rows, starting from the parameters of the last call.

        Parameters
        ----------
        X : array or sparse matrix
            Rows to fit.
        y : array
            Label of each row.
        classes : array, optional
            All classes. The first call needs them, later calls may leave them out.
        sample_weight : array, optional
            Weight of each row.

        Returns
        -------
        HogwildClassifier
            The fitted estimator itself.

        Raises
        ------
        ValueError
            If the first call lacks ``classes``, or if a later call names other classes.
        """
        first = not hasattr(self, "classes_")
        if first:
            check_together(self._all_params(), passive_aggressive_loss="hinge", partial=True)
            self._refuse_balanced()
        matrix, targets, weights = self._checked(X, y, sample_weight, reset=first)
        if first:
            if classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            self._set_classes(unique_labels(classes))
        elif not (classes is None or self._are_classes(classes)):
            raise ValueError(
                f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {self.classes_!r}"
            )
        labels, data = self._labels(), self._data(matrix, targets, weights, self._numbers(targets))[0]
        start: State = self._last_state(labels.outputs)
        earlier = int(getattr(self, "t_", 1.0) - 1)
        task = Task(data, labels, start, self._class_weight_of(targets), earlier=earlier)
        return self._fitted(task, matrix.shape[0], matrix.dtype, partial=True)

    def decision_function(self, X: Rows) -> Array:
        """Return the score of each row: one number for two classes, else one number per class."""
        scores = self._scores(X)
        return scores.ravel() if scores.shape[1] == 1 else scores

    @available_if(_has_probabilities)
    def predict_proba(self, X: Rows) -> Array:
        """Return the probability of each class, for ``log_loss``, ``modified_huber`` and ``softmax``."""
        check_is_fitted(self)
        scores = self._scores(X)
        found = self._model(self.intercept_).probabilities_of(
            np.asarray(scores, np.float64)
        )  # float64, because e**500 overflows float32
        return found.astype(scores.dtype, copy=False)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Rows) -> Array:
        """Return the logarithm of the probability of each class, minus infinity where the probability is zero."""
        return np.asarray(np.log(self.predict_proba(X)))

    def score(self, X: Rows, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy on these rows. A file or a data set provides its own labels and weights."""
        if not is_source(X):
            return float(super().score(X, y, sample_weight))
        data, numbers, weights = self._labelled(X, y, sample_weight)
        labels = classes_of(data, numbers)
        refuse_other_labels(self.classes_, labels, data.name)
        if labels.dtype.kind != "U":  # raises an error for labels unknown to the model
            LabelEncoding(self.classes_.astype(np.float64)).encode(labels, data.name)
        return float(accuracy_score(self._numbers(labels), self._numbers(self.predict(data)), sample_weight=weights))

    def _fitted(self, task: Task, rows: int, dtype: np.dtype[Any], *, partial: bool) -> Self:
        learnt = self._learn(task, rows, dtype, partial=partial)
        self._keep_coef(np.ascontiguousarray(learnt.weights.T, dtype), partial=partial)
        self.intercept_ = learnt.intercept.astype(dtype)
        return self

    def _seeds(self, task: Task, parts: Parts) -> tuple[int, ...]:
        """Return one seed for all classes, or one seed per class where classes are trained in separate runs.

        Separate runs are needed for scikit-learn's order of rows, for a step size that differs between classes, and for
        early stopping: each class stops by its own score, with any number of workers. A run with a rule of the user's
        remembers more than weights, and stops all classes by their common score.
        """
        own_steps = parts.rule.step_size != "scheduled" or parts.rule.single_worker
        own_stops = parts.budget.monitor == "score" and self.rule is None and parts.loss.name != SOFTMAX.name
        alone = own_steps or own_stops or isinstance(task.data.order, Reshuffled)
        return class_seeds(check_random_state(self.random_state), len(self.classes_) if alone else 2)

    def _set_classes(self, classes: Array) -> None:
        if len(classes) < 2:
            raise ValueError(f"The number of classes has to be greater than one; got {len(classes)} class")
        self.classes_ = classes

    def _are_classes(self, classes: ArrayLike) -> bool:
        """Return whether these are the classes of the first call: at once where they have the same order."""
        return np.array_equal(self.classes_, classes) or np.array_equal(self.classes_, unique_labels(classes))

    def _labels(self) -> LabelEncoding:
        return LabelEncoding(np.arange(len(self.classes_), dtype=np.float64))

    def _numbers(self, y: Array) -> Array:
        """Return the index of the class of each label."""
        at = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        unknown = self.classes_[at] != y
        if np.any(unknown):
            raise ValueError(f"y has the label {y[unknown][0]!r}, which is not one of classes={self.classes_!r}")
        return at

    def _class_weight_of(self, y: Array) -> dict[float, float] | None:
        if self.class_weight is None:
            return None
        weights = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        return {float(k): float(weight) for k, weight in enumerate(weights)}

    def _class_weight_of_source(self, numbers: Array) -> ClassWeight:
        """Return the weights of classes by the numbers that the data has for them."""
        given = self.class_weight
        if not isinstance(given, dict):
            return given
        number_of: dict[Any, Any] = dict(zip(self.classes_.tolist(), numbers.tolist(), strict=True))
        if self.classes_.dtype.kind == "U":
            unknown = [label for label in given if label not in number_of]
            if unknown:
                raise ParameterError(
                    f"The 'class_weight' parameter names the label {unknown[0]!r}, which is not in the data."
                )
        known = {**{label: label for label in given}, **number_of}
        return {float(known[label]): weight for label, weight in given.items()}

    def _refuse_balanced(self) -> None:
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight 'balanced' is not supported for partial_fit. In order to use 'balanced' weights, use "
                "compute_class_weight('balanced', classes=classes, y=y). In place of y you can use a large enough "
                "sample of the full training set target to properly estimate the class frequency distributions. "
                "Pass the resulting weights as the class_weight parameter."
            )
