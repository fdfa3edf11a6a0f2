"""Linear one-class SVM with the interface of scikit-learn's ``SGDOneClassSVM``, trained by several workers."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OutlierMixin, _fit_context
from sklearn.linear_model import SGDOneClassSVM
from sklearn.utils.validation import check_is_fitted

from hogwild.data.csr import Array
from hogwild.data.dataset import Dataset
from hogwild.estimators.inputs import MatrixLike, RandomState, Rows, is_source, open_source
from hogwild.estimators.linear_base import LinearEstimator, initial, zero_coefficients
from hogwild.estimators.one_at_a_time import one_at_a_time
from hogwild.estimators.sklearn_parameters import check_together, constraints, warn_deprecated
from hogwild.estimators.task import State, Task, state_of
from hogwild.problems.label_encoding import LabelEncoding
from hogwild.rules import Rule
from hogwild.strategies import Strategy

INLIER = LabelEncoding(np.array([-1.0, 1.0]))


class HogwildOneClassSVM(OutlierMixin, LinearEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""Linear one-class SVM: a plane that leaves a share of about ``nu`` of the rows on the side of the origin.

    The parameters of :class:`sklearn.linear_model.SGDOneClassSVM` have the same meanings and defaults here. The fit
    minimises, over the weights and the offset :math:`\rho`,

    .. math:: \frac1n \sum_i \max(0, \rho - w \cdot x_i) + \frac\nu2 \|w\|_2^2 - \nu \rho

    Parameters
    ----------
    nu : float, default 0.5
        Share of the rows that are outliers, and the strength of the penalty.
    fit_intercept : bool, default True
        Whether to learn the offset.
    max_iter : int, default 1000
        Maximum number of epochs of ``fit``.
    tol : float or None, default 1e-3
        Improvement of the monitored value below which an epoch counts as stalled. None runs all ``max_iter`` epochs.
    shuffle : bool, default True
        Whether every epoch visits the rows in a new random order.
    verbose : int, default 0
        With a value other than 0, print one line per epoch.
    random_state : int, RandomState or None, default None
        Seed of the order of rows.
    learning_rate : str, default "optimal"
        Schedule of the step size, as in :class:`HogwildClassifier`.
    eta0 : float, default 0.01
        Initial step size of the schedules other than "optimal".
    power_t : float, default 0.5
        Exponent of the schedule "invscaling". A negative one is deprecated, as in scikit-learn.
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
    >>> X = np.random.default_rng(0).normal(2.0, 1.0, (200, 2))
    >>> model = HogwildOneClassSVM(nu=0.1, random_state=0).fit(X)
    >>> model.predict([[2.0, 2.0], [-3.0, -3.0]])
    array([ 1, -1])
    """

    _parameter_constraints = constraints(SGDOneClassSVM)

    def __init__(
        self, nu: float = 0.5, fit_intercept: bool = True, max_iter: int = 1000, tol: float | None = 1e-3,
        shuffle: bool = True, verbose: int = 0, random_state: RandomState = None, learning_rate: str = "optimal",
        eta0: float = 0.01, power_t: float = 0.5, warm_start: bool = False, average: bool | int = False, *,
        n_jobs: int | None = None, strategy: Strategy | str | None = None, rule: Rule | str | None = None,
        buffer: int | str = "auto", memory: int | str | None = None,
        identical_to_sklearn: bool = False, device: str = "cpu",
    ) -> None:  # fmt: skip
        self.nu = nu
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.verbose = verbose
        self.random_state = random_state
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.warm_start = warm_start
        self.average = average
        self.n_jobs = n_jobs
        self.strategy = strategy
        self.rule = rule
        self.buffer = buffer
        self.memory = memory
        self.identical_to_sklearn = identical_to_sklearn
        self.device = device

    def _all_params(self) -> dict[str, Any]:
        return {**super()._all_params(), "alpha": self.nu}

    @one_at_a_time
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Rows, y: object = None, coef_init: MatrixLike | None = None, offset_init: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Fit the model to all rows, from zero or, with ``warm_start``, from the parameters of the last fit.

        Parameters
        ----------
        X : array, sparse matrix, path or Dataset
            Rows to fit.
        y : None
            Ignored.
        coef_init, offset_init : array, optional
            Initial weights and offset.
        sample_weight : array, optional
            Weight of each row. A file or a data set has its own weights.

        Returns
        -------
        HogwildOneClassSVM
            The fitted estimator itself.
        """
        check_together(self._all_params(), passive_aggressive_loss="epsilon_insensitive")
        warn_deprecated(self._all_params())
        if self.warm_start and hasattr(self, "coef_"):
            coef_init = self.coef_ if coef_init is None else coef_init
            offset_init = self.offset_ if offset_init is None else offset_init
        if hasattr(self, "_reading"):
            del self._reading
        data, dtype = self._rows(X, sample_weight, reset=True)
        constant = None if offset_init is None else 1 - np.asarray(offset_init, float)
        start = initial(coef_init, constant, 1, self.n_features_in_, otherwise=1.0)
        return self._fitted(data, start, dtype, partial=False)

    @one_at_a_time
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Rows, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Make one epoch over these rows, starting from the parameters of the last call."""
        first = not hasattr(self, "coef_")
        if first:
            check_together(self._all_params(), passive_aggressive_loss="epsilon_insensitive", partial=True)
        data, dtype = self._rows(X, sample_weight, reset=first)
        start = (
            state_of(zero_coefficients(1, self.n_features_in_), np.ones(1))
            if first
            else self._last_state(1, 1 - self.offset_)
        )
        return self._fitted(data, start, dtype, partial=True)

    def score_samples(self, X: Rows) -> Array:
        """Return the score of each row before the offset is subtracted."""
        return np.asarray(self.decision_function(X) + self.offset_)

    def decision_function(self, X: Rows) -> Array:
        """Return the signed score of each row: positive on the side of the inliers, negative for outliers."""
        return self._scores(X).ravel()

    def predict(self, X: Rows) -> Array:
        """Return 1 for inliers and -1 for outliers."""
        check_is_fitted(self)
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def _rows(self, X: Rows, sample_weight: ArrayLike | None, *, reset: bool) -> tuple[Dataset, np.dtype[Any]]:
        """Return the data set, each row labelled as an inlier, and the type of its values."""
        if is_source(X):
            data = self._split_dataset(open_source(X, None, sample_weight, self.memory))[0]
            return data.with_labels(np.ones_like), np.dtype(np.float32)
        matrix, _, weights = self._checked(X, None, sample_weight, reset=reset)
        return self._data(matrix, matrix, weights, np.ones(matrix.shape[0]))[0], matrix.dtype

    def _fitted(self, data: Dataset, start: State, dtype: np.dtype[Any], *, partial: bool) -> Self:
        earlier = int(getattr(self, "t_", 1.0) - 1) if partial else 0
        task = Task(data, INLIER, start, intercept_gradient=float(self.nu), earlier=earlier)
        learnt = self._learn(task, data.n_rows, dtype, partial=partial)
        self._keep_coef(learnt.weights.ravel().astype(dtype), partial=partial)
        self.offset_ = (1 - learnt.intercept).astype(dtype)
        return self
