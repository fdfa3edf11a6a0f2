"""Base class of the three linear estimators: checks of the data, training, fitted attributes and scores."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix, issparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from hogwild import strategies
from hogwild.data import InMemoryDataset
from hogwild.data import open as open_data
from hogwild.data.arrays import require_structure
from hogwild.data.csr import Array
from hogwild.data.dataset import Dataset
from hogwild.errors import DataError, HogwildError, ParameterError
from hogwild.estimators.device import with_device
from hogwild.estimators.direct_fit import WORTH_A_THREAD, fits_directly, learn_directly
from hogwild.estimators.inputs import (
    LARGEST_SEED,
    NOTHING_TO_VALIDATE,
    MatrixLike,
    Rows,
    Source,
    check_memory,
    float_types,
    in_memory,
    in_sklearn_order,
    is_finite,
    is_large,
    is_source,
    label_name,
    labels_and_weights,
    refuse_labels,
    rows_to_validate,
    split_off,
    told_of_text,
)
from hogwild.estimators.sklearn_parameters import (
    Parts,
    loss_of,
    processors_left,
    same_as_sklearn,
    strategy_of,
    translate,
    with_useful_workers,
)
from hogwild.estimators.task import Learnt, State, Task, overflow_message, state_of
from hogwild.files import format_size
from hogwild.machine import too_little_memory, usable_cores
from hogwild.rules import Sequential
from hogwild.strategies import Strategy

if TYPE_CHECKING:
    from onnx import ModelProto
    from sklearn.utils import Tags

    from hogwild.models.linear import LinearModel
    from hogwild.onnx_graph import Inputs

ABSENT_PARAMS = {  # values of parameters that a class lacks
    "loss": "hinge", "penalty": "l2", "l1_ratio": 0.0, "epsilon": 0.1, "early_stopping": False,
    "validation_fraction": 0.1, "n_iter_no_change": 5,
}  # fmt: skip

# Bytes of a coefficient in a fit: float64, in the state, its copy, the result and ``coef_``.
FIT_BYTES = 32


class LinearEstimator(SparseCoefMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Linear model that ``minimise`` trains: the base of classifier, regressor and one-class SVM."""

    n_jobs: int | None
    strategy: Strategy | str | None
    device: str
    memory: int | str | None
    _state: State | None
    _mean: tuple[Array, Array] | None

    def _validate_params(self) -> None:
        super()._validate_params()
        check_memory(self.memory)

    def _all_params(self) -> dict[str, Any]:
        return {**ABSENT_PARAMS, **{name: getattr(self, name) for name in self._get_param_names()}}

    @classmethod
    def _get_param_names(cls) -> list[str]:
        kind: Any = cls
        return list(_parameters(kind))

    def _checked(
        self, X: Rows, y: ArrayLike | None, sample_weight: ArrayLike | None, *, reset: bool, **how: object
    ) -> tuple[Any, Any, Any]:
        """Return validated arrays that kernels accept: float32 is kept, and 64-bit indices are allowed."""
        how |= {
            "accept_sparse": "csr",
            "accept_large_sparse": True,
            "dtype": float_types(X),
            "order": "C",
            "reset": reset,
            # scikit-learn's check takes as long as several epochs of many workers, and is made to raise its error.
            "ensure_all_finite": not (is_large(X) and is_finite(X, self._threads())),
        }
        if hasattr(X, "tocsr"):
            X = require_structure(X, threads=self._threads() if is_large(X) else 1)
        with told_of_text(X):
            if self.__sklearn_tags__().target_tags.required:
                rows, labels = validate_data(self, X, y, **how)
            else:
                rows, labels = validate_data(self, X, **how), y
        if sample_weight is None:
            return rows, labels, None
        if self._all_params()["early_stopping"] and not np.any(sample_weight):
            raise ValueError(NOTHING_TO_VALIDATE)
        return rows, labels, _check_sample_weight(sample_weight, rows, dtype=rows.dtype)

    def _data(
        self, X: Array | csr_matrix, y: Array, sample_weight: Array | None, numbers: Array
    ) -> tuple[Dataset, Dataset | None]:
        """Return the training rows, and the rows that early stopping holds out, or None."""
        dense = isinstance(X, np.ndarray)
        params = with_device(self._all_params(), int(X.size) * self._outputs)
        params = with_useful_workers(params, int(X.size), X.shape[1], self._outputs, dense=dense)
        if same_as_sklearn(params) and not params["identical_to_sklearn"]:
            data = in_memory(X, numbers, sample_weight)
        else:
            data = _opened(X, numbers, sample_weight)
            if same_as_sklearn(params):
                data = in_sklearn_order(data, sample_weight)
        if not params["early_stopping"]:
            return data, None
        stratified = hasattr(self, "classes_")
        held_out = rows_to_validate(
            y, sample_weight, params["validation_fraction"], params["random_state"], stratified=stratified
        )
        return split_off(data, held_out)

    @property
    def _outputs(self) -> int:
        classes: Array | tuple[()] = getattr(self, "classes_", ())
        return len(classes) if len(classes) > 2 else 1

    def _split_dataset(self, data: Dataset) -> tuple[Dataset, Dataset | None]:
        """Record the columns of a data set, and split off held-out rows if early stopping is on."""
        params = self._all_params()
        if params["identical_to_sklearn"]:
            raise ParameterError(
                "identical_to_sklearn is for arrays: scikit-learn reads no files. Leave it out, or give X and y."
            )
        self.n_features_in_ = data.n_features
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._reading = data.reading
        if not params["early_stopping"]:
            return data, None
        return data.split(params["validation_fraction"], self._seed())

    def _threads(self) -> int:
        """Return the number of threads of a fit by a single worker."""
        workers = processors_left(self.n_jobs)
        return workers if workers == 1 else min(workers, usable_cores())

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(LARGEST_SEED))

    def _seeds(self, task: Task, parts: Parts) -> tuple[int, ...]:
        """Return the seed of the run, or one seed per class where classes are trained in separate runs."""
        return (self._seed(),)

    def _learn(self, task: Task, rows: int, dtype: np.dtype[Any], *, partial: bool) -> Learnt:
        """Train, and keep the state that a later ``partial_fit`` continues from."""
        params = with_device(self._all_params(), task.data.nonzeros * self._outputs)
        if isinstance(task.data, InMemoryDataset) and task.data.name == "arrays":
            data = task.data
            params = with_useful_workers(
                params, data.nonzeros, data.n_features, self._outputs, dense=data.layout == "dense"
            )
            if data.nonzeros * self._outputs >= WORTH_A_THREAD:
                task = replace(task, threads=self._threads())
        step = getattr(self, "_step", None) if partial else None
        parts = translate(
            params, epochs=1 if partial else None, step=step, precision=np.dtype(dtype).name, earlier=task.earlier
        )
        if isinstance(parts.rule, Sequential):
            task = replace(task, labels=replace(task.labels, precision=np.dtype(dtype).name))
        task = replace(task, seeds=self._seeds(task, parts))
        learnt = self._trained(task, parts, params)
        for message in sorted(learnt.convergence_warnings):
            # With a stack level of 6 the warning names the line that called fit.
            warnings.warn(message, ConvergenceWarning, stacklevel=6)
        self._step = learnt.step or step
        self.t_ = 1.0 + task.earlier + learnt.epochs * rows
        self.n_iter_, self.n_workers_ = learnt.epochs, learnt.workers
        # The state is kept where the weights alone do not suffice to continue: a rule has memory, or iterates are
        # averaged.
        state = learnt.state
        self._state = state if state is not None and (params["average"] or state[0].shape[1] > 1) else None
        return self._averaged(learnt, task.earlier, rows) if params["average"] else learnt

    def _trained(self, task: Task, parts: Parts, params: Mapping[str, Any]) -> Learnt:
        """Train, and from the start again where weights overflow: in a run that goes back and halves its step then."""
        if fits_directly(params, task.data):
            try:
                return learn_directly(task, parts, params)
            except FloatingPointError:
                assert isinstance(task.data, InMemoryDataset)
                task = replace(task, data=in_sklearn_order(task.data))
        from hogwild.estimators.fit import learn  # with all of ``minimise``, which most fits of arrays do not need

        return learn(task, parts, params)

    def _keep_coef(self, coef: Array, *, partial: bool) -> None:
        """Keep weights as ``coef_``. ``partial_fit`` writes them to the array of the call before, as scikit-learn's."""
        old = getattr(self, "coef_", None) if partial else None
        if isinstance(old, np.ndarray) and (old.shape, old.dtype) == (coef.shape, coef.dtype) and old.flags.writeable:
            old[...] = coef
        else:
            self.coef_ = coef

    def _averaged(self, learnt: Learnt, earlier: int, rows: int) -> Learnt:
        """Merge the mean of this call's iterates into the mean of all earlier calls, weighted by their numbers."""
        before = max(0, earlier - int(self.average) + 1)
        mean: tuple[Array, Array] | None = getattr(self, "_mean", None)
        if before and mean is not None:
            share = before / (self.t_ - int(self.average))
            for new, old in zip((learnt.weights, learnt.intercept), mean, strict=True):
                new += new.dtype.type(share) * (old - new)
        self._mean = (learnt.weights.copy(), learnt.intercept.copy())
        return learnt

    def _last_state(self, outputs: int, constant: Array | None = None) -> State:
        """Return the initial state of ``partial_fit``: the state after the call before, or zeros."""
        kept: State | None = getattr(self, "_state", None)
        if kept is not None:
            return kept
        coef, intercept = getattr(self, "coef_", None), getattr(self, "intercept_", constant)
        if coef is None or intercept is None:
            return state_of(zero_coefficients(outputs, self.n_features_in_), np.zeros(outputs))
        return state_of(coef.toarray() if hasattr(coef, "toarray") else coef, intercept)

    def _scores(self, X: Rows) -> Array:
        """Return the scores of each row, one column per output."""
        check_is_fitted(self)
        intercept = self.intercept_ if hasattr(self, "intercept_") else -self.offset_
        if is_source(X):
            return self._model(intercept).decide(cast(Any, X))
        if hasattr(X, "columns") and getattr(self, "_reading", {}).get("encoding") is not None:
            return self._model(intercept).decide(cast(Any, X))  # A frame with the columns of the table that was fitted.
        if hasattr(X, "tocsr"):
            X = require_structure(X)
        sparse = issparse(X)
        with told_of_text(X):
            rows = validate_data(self, X, accept_sparse="csr", reset=False, ensure_all_finite=not sparse)
        coef = self.coef_
        if coef.ndim == 1:  # SciPy cannot reshape a sparse array of one dimension
            coef = np.atleast_2d(coef.toarray() if hasattr(coef, "toarray") else coef)
        scores: Array = safe_sparse_dot(rows, coef.T, dense_output=True) + intercept
        if sparse and not np.isfinite(scores).all():  # as they are wherever a value of the rows is not finite
            validate_data(self, X, accept_sparse="csr", reset=False)
        return scores

    def _labelled(
        self, X: Source, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[Dataset, Array, Array | None]:
        """Return a file or data set to be scored, its labels, and its weights or None."""
        check_is_fitted(self)
        label = label_name(X, y)
        refuse_labels(None if label is not None else y, sample_weight)
        named = {} if label is None else {"label": label}
        intercept = self.intercept_ if hasattr(self, "intercept_") else -self.offset_
        data = X if isinstance(X, Dataset) else self._model(intercept).open(X, unlabelled=False, **named)
        return data, *labels_and_weights(data)

    def _model(self, intercept: Array) -> LinearModel:
        from hogwild.models.linear import LinearModel

        coef = self.coef_.toarray() if hasattr(self.coef_, "toarray") else self.coef_
        loss, classes = loss_of(self._all_params()), getattr(self, "classes_", None)
        return LinearModel(
            np.ascontiguousarray(np.atleast_2d(coef).T, np.float32), np.asarray(intercept, np.float32), str(loss),
            None if classes is None else tuple(range(len(classes))), loss.link, getattr(self, "_reading", {}),
        )  # fmt: skip

    def to_onnx(self, path: str | os.PathLike[str] | None = None, *, inputs: Inputs = "dense") -> ModelProto:
        """Return the fitted model as an ONNX graph, and write it to ``path`` if a path is given.

        The input ``X`` is a matrix with the type of ``coef_``. A classifier has the outputs ``label`` and
        ``probabilities``, or ``scores`` where its loss defines no probabilities. A regressor has the output
        ``variable``. A one-class SVM has the outputs ``label`` and ``scores``. The export needs the extra ``onnx``.

        With ``inputs="sparse"``, a row is given by ``columns`` and ``values``, each of shape [N, M]; shorter rows are
        filled up with values of 0. With ``inputs="table"``, for a model of a table, there is one input [N, 1] for each
        of its columns: double for numbers, with NaN for missing ones, and string for categories.
        """
        from hogwild.estimators.onnx_export import to_onnx

        return to_onnx(self, path, inputs=inputs)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # scikit-learn asks for tags at every prediction.
        if self.n_jobs not in (None, 1) or self.strategy is not None or self.device != "cpu":
            try:
                tags.non_deterministic = strategies.worker_count(strategy_of(self._all_params())) > 1
            except (HogwildError, TypeError, AttributeError):  # fit raises the error for wrong parameters
                tags.non_deterministic = False
        return tags


def _opened(X: MatrixLike, numbers: Array, sample_weight: Array | None) -> InMemoryDataset:
    """Open arrays whose values scikit-learn has found finite. A value that overflows float32 has its message."""
    try:
        data = open_data(X, numbers, sample_weight)
        assert isinstance(data, InMemoryDataset)
        return data
    except DataError as error:
        if error.column is None:  # not about a value of X
            raise
        raise DataError(overflow_message("epoch #0, before the first update", str(error))) from error


@cache
def _parameters(kind: type[LinearEstimator]) -> tuple[str, ...]:
    """Return the names of a class's parameters, cached because scikit-learn inspects the signature for every clone."""
    return tuple(BaseEstimator._get_param_names.__func__(kind))


def zero_coefficients(outputs: int, features: int) -> Array:
    """Return coefficients of zero; raise ``DataError`` if their fit would exceed the free memory."""
    needed = FIT_BYTES * outputs * features
    if (room := too_little_memory(needed)) is not None:
        what = f"a fit of {outputs} x {features:,} coefficients takes {format_size(needed)} of memory"
        raise DataError(
            what,
            remedy=f"There is {format_size(room)}. Hash the features into fewer columns, or train with "
            "minimise(Linear((X, y))), which leaves out features that no row has.",
        )
    return np.zeros((outputs, features))


def initial(
    coef: MatrixLike | None, intercept: ArrayLike | None, outputs: int, features: int, otherwise: float = 0.0
) -> State:
    """Check ``coef_init`` and ``intercept_init`` as given by a user, and return them in the order of the kernels.

    >>> [part.ravel().tolist() for part in initial([1, 2], None, 1, 2)]
    [[1.0, 2.0], [0.0]]
    """
    if coef is None and intercept is None:
        return zero_coefficients(outputs, features).reshape(-1, 1), np.full((outputs, 1), otherwise)
    if coef is None:
        coef = zero_coefficients(outputs, features)
    elif hasattr(coef, "toarray"):
        coef = coef.toarray()
    given = np.asarray(coef, float)
    if given.shape != (outputs, features) and (outputs > 1 or given.size != features):
        raise ValueError("Provided coef_init does not match dataset.")
    constant = np.full(outputs, otherwise) if intercept is None else np.asarray(intercept, float)
    if constant.shape != (outputs,) and (outputs > 1 or constant.shape != ()):
        raise ValueError("Provided intercept_init does not match dataset.")
    if not (np.isfinite(given).all() and np.isfinite(constant).all()):
        raise ValueError("Provided values to begin with are not finite.")
    return state_of(given.reshape(outputs, features), constant)
