"""Linear regressor with the interface of scikit-learn's ``SGDRegressor``, trained by several workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin, _fit_context
from sklearn.linear_model import SGDRegressor

from hogwild.data.csr import Array
from hogwild.estimators.inputs import MatrixLike, RandomState, Rows, is_source, open_source
from hogwild.estimators.linear_base import LinearEstimator, initial
from hogwild.estimators.one_at_a_time import one_at_a_time
from hogwild.estimators.sklearn_parameters import check_together, constraints, loss_of, warn_deprecated
from hogwild.estimators.task import Task
from hogwild.keywords import advised
from hogwild.losses import Loss
from hogwild.problems.label_encoding import LabelEncoding
from hogwild.rules import Rule
from hogwild.strategies import Strategy

if TYPE_CHECKING:
    from sklearn.utils import Tags


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
class HogwildRegressor(RegressorMixin, LinearEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Linear regression (least squares, Huber, support vectors, ...) trained by SGD with several workers.

    The parameters of :class:`sklearn.linear_model.SGDRegressor` have the same meanings and defaults here.

    Parameters
    ----------
    loss : str, Loss or callable, default "squared_error"
        A loss of ``SGDRegressor``, or "poisson" for counts, or "quantile" for the median.
        ``hogwild.losses.named("quantile:0.9")`` is another quantile. A loss may be a function ``(z, y) -> (loss,
        derivative)``.
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
    random_state : int, RandomState or None, default None
        Seed of the order of rows and of the split for early stopping.
    learning_rate : {"invscaling", "optimal", "constant", "adaptive", "pa1", "pa2"}, default "invscaling"
        Schedule of the step size, as in :class:`HogwildClassifier`.
    eta0 : float, default 0.01
        Initial step size of the schedules other than "optimal".
    power_t : float, default 0.25
        Exponent of the schedule "invscaling". A negative one is deprecated, as in scikit-learn.
    early_stopping : bool, default False
        Whether to stop by R^2 on held-out rows.
    validation_fraction : float, default 0.1
        Share of the rows that early stopping holds out.
    n_iter_no_change : int, default 5
        Number of stalled epochs after which a fit stops.
    warm_start : bool, default False
        Whether ``fit`` starts from the parameters of the last fit.
    average : bool or int, default False
        Whether to average iterates. A number is the first update that enters the average.
    n_jobs : int, optional
        Largest number of workers. None is 1 worker, -1 is one worker per core. As many share the weights as are faster.
        With shared weights, results differ between runs.
    strategy : Strategy or str, optional
        Scheme by which workers share the weights, as in :class:`HogwildClassifier`.
    rule : Rule or str, optional
        Update rule. None is plain SGD.
    buffer : int or "auto", default "auto"
        Rows between two merges of a worker's hot replica; see :class:`hogwild.Hogwild`.
    memory : int or str, optional
        Maximum resident memory in bytes, or as a string such as "1GiB", when ``X`` is a file.
    identical_to_sklearn : bool, default False
        Whether a single worker makes scikit-learn's updates to the last bit. Otherwise it rounds differently, and takes
        half the time or less.
    device : {"cpu", "cuda", "auto"}, default "cpu"
        Where the fit runs. On a GPU, thousands of rows are trained at the same time, and ``n_jobs`` has no meaning.
        "auto" takes a GPU if there is one and the data is large.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> model = HogwildRegressor(random_state=0).fit(X, X @ [1.0, -2.0, 0.5])
    >>> model.coef_.round(1), round(model.score(X, X @ [1.0, -2.0, 0.5]), 2)
    (array([ 1. , -2. ,  0.5]), 1.0)
    """

    _parameter_constraints = constraints(SGDRegressor, "poisson", "quantile")
    loss_functions = SGDRegressor.loss_functions

    def __init__(
        self, loss: str | Loss | Callable[[float, float], tuple[float, float]] = "squared_error", *,
        penalty: str | None = "l2", alpha: float = 0.0001, l1_ratio: float = 0.15, fit_intercept: bool = True,
        max_iter: int = 1000, tol: float | None = 1e-3, shuffle: bool = True, verbose: int = 0, epsilon: float = 0.1,
        random_state: RandomState = None, learning_rate: str = "invscaling", eta0: float = 0.01,
        power_t: float = 0.25, early_stopping: bool = False, validation_fraction: float = 0.1,
        n_iter_no_change: int = 5, warm_start: bool = False, average: bool | int = False, n_jobs: int | None = None,
        strategy: Strategy | str | None = None, rule: Rule | str | None = None, buffer: int | str = "auto",
        memory: int | str | None = None,
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
        self.random_state = random_state
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.average = average
        self.n_jobs = n_jobs
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
            Number to predict for each row. A file or a data set has its own labels. For a file with columns (CSV, JSON
            lines, Parquet) it may be the name of the column with the labels.
        coef_init, intercept_init : array, optional
            Initial weights and intercept.
        sample_weight : array, optional
            Weight of each row. A file or a data set has its own weights.

        Returns
        -------
        HogwildRegressor
            The fitted estimator itself.
        """
        check_together(self._all_params(), passive_aggressive_loss="epsilon_insensitive")
        warn_deprecated(self._all_params())
        old = (self.coef_, self.intercept_) if self.warm_start and hasattr(self, "coef_") else (None, None)
        if hasattr(self, "_reading"):
            del self._reading
        if is_source(X):
            data = open_source(X, y, sample_weight, self.memory)
            train, held_out = self._split_dataset(data)
            rows, dtype = data.n_rows, np.dtype(np.float32)
        else:
            matrix, targets, weights = self._checked(X, y, sample_weight, reset=True, y_numeric=True)
            train, held_out = self._data(matrix, targets, weights, targets)
            rows, dtype = matrix.shape[0], matrix.dtype
        coef = old[0] if coef_init is None else coef_init
        intercept = old[1] if intercept_init is None else intercept_init
        start = initial(coef, intercept, 1, self.n_features_in_)
        return self._fitted(Task(train, self._labels(), start, held_out=held_out), rows, dtype, partial=False)

    @one_at_a_time
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Make one epoch over these rows, starting from the parameters of the last call."""
        first = not hasattr(self, "coef_")
        if first:
            check_together(self._all_params(), passive_aggressive_loss="epsilon_insensitive", partial=True)
        matrix, targets, weights = self._checked(X, y, sample_weight, reset=first, y_numeric=True)
        data = self._data(matrix, targets, weights, targets)[0]
        task = Task(data, self._labels(), self._last_state(1), earlier=int(getattr(self, "t_", 1.0) - 1))
        return self._fitted(task, matrix.shape[0], matrix.dtype, partial=True)

    def predict(self, X: Rows) -> Array:
        """Return the predicted number of each row."""
        scores = self._scores(X).ravel()
        return np.asarray(np.exp(scores)) if loss_of(self._all_params()).link == "exp" else scores

    def score(self, X: Rows, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Return R², the explained share of the variance. A file or a data set provides its own labels and weights."""
        if is_source(X):
            X, y, sample_weight = self._labelled(X, y, sample_weight)
        return float(super().score(X, y, sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss == "poisson"
        return tags

    def _labels(self) -> LabelEncoding:
        return LabelEncoding(None, counts=loss_of(self._all_params()).targets == "counts")

    def _fitted(self, task: Task, rows: int, dtype: np.dtype[Any], *, partial: bool) -> Self:
        learnt = self._learn(task, rows, dtype, partial=partial)
        self._keep_coef(learnt.weights.ravel().astype(dtype), partial=partial)
        self.intercept_ = learnt.intercept.astype(dtype)
        return self
