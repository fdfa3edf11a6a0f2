"""Sparse matrices whose arrays do not fit, given to fit and to predict: an error, never a crash of SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import hogwild
from hogwild.errors import DataError, ParameterError

RNG = np.random.default_rng(0)
X = sp.random(60, 12, 0.4, "csr", random_state=RNG)
Y = (np.asarray(X.sum(axis=1)).ravel() > 2).astype(float)


def _far_index(matrix: Any) -> None:
    matrix.indices[3] = 10**9 % np.iinfo(matrix.indices.dtype).max


def _negative_index(matrix: Any) -> None:
    matrix.indices[3] = -5


def _short_data(matrix: Any) -> None:
    matrix.data = matrix.data[:-4]


def _short_indices(matrix: Any) -> None:
    matrix.indices = matrix.indices[:-4]


def _far_start(matrix: Any) -> None:
    matrix.indptr[5] = 10**8


def _falling_start(matrix: Any) -> None:
    matrix.indptr[5] = 0


def _first_start(matrix: Any) -> None:
    matrix.indptr[0] = 2


def _short_starts(matrix: Any) -> None:
    matrix.indptr = matrix.indptr[:-1]


DAMAGES = (
    _far_index, _negative_index, _short_data, _short_indices, _far_start, _falling_start, _first_start, _short_starts,
)  # fmt: skip
ESTIMATORS: dict[str, Callable[[], Any]] = {
    "classifier": lambda: hogwild.HogwildClassifier(max_iter=3, tol=None),
    "regressor": lambda: hogwild.HogwildRegressor(max_iter=3, tol=None),
    "one class": lambda: hogwild.HogwildOneClassSVM(max_iter=3, tol=None),
    "two jobs": lambda: hogwild.HogwildClassifier(max_iter=3, tol=None, n_jobs=2, strategy="hogwild"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_damaged_matrix_is_refused(name: str, kind: str, damage: Callable[[Any], None]) -> None:
    damaged = X.asformat(kind).copy()
    damage(damaged)
    fitted = ESTIMATORS[name]().fit(X, Y)
    tried = [fitted.predict, fitted.decision_function] if hasattr(fitted, "decision_function") else [fitted.predict]
    for call in (*tried, lambda matrix: ESTIMATORS[name]().fit(matrix, Y)):
        with pytest.raises(DataError, match=r"damaged|is not within"):
            call(damaged)


@pytest.mark.parametrize("damage", [_far_index, _far_start])
def test_damaged_ratings_and_graphs(damage: Callable[[Any], None]) -> None:
    damaged = sp.csr_matrix(sp.random(20, 20, 0.5, random_state=RNG))
    damage(damaged)
    for call in (hogwild.MatrixCompletion, lambda matrix: hogwild.GraphCut(matrix, {0: 0, 1: 1})):
        with pytest.raises(DataError, match=r"damaged|is not within"):
            call(damaged)


@pytest.mark.parametrize("value", [1e39, -3e200])
def test_sparse_values_beyond_single_precision_are_refused_as_dense_ones(value: float) -> None:
    dense = np.eye(3)
    dense[1, 1] = value
    messages = []
    for matrix in (dense, sp.csr_array(dense), sp.csc_array(dense), sp.coo_array(dense)):
        with pytest.raises(DataError, match="too large for single precision") as caught:
            hogwild.data.open(matrix, np.zeros(3))
        messages.append(str(caught.value))
    assert len(set(messages)) == 1


@pytest.mark.parametrize("memory", ["abc", "-3", -5, 0, "", "0", "1 parsec"])
def test_a_memory_that_is_no_size(memory: Any) -> None:
    for kind in (
        hogwild.HogwildClassifier, hogwild.HogwildRegressor, hogwild.HogwildOneClassSVM, hogwild.HogwildFMClassifier,
        hogwild.HogwildFMRegressor,
    ):  # fmt: skip
        with pytest.raises(ParameterError, match="size"):
            kind(memory=memory).fit(X, Y)


def test_a_part_of_a_seed_that_no_graph_has() -> None:
    with pytest.raises(ParameterError, match="in part 999999999999, but 2 nodes"):
        hogwild.GraphCut(sp.csr_array([[0.0, 1.0], [1.0, 0.0]]), {0: 0, 1: 999_999_999_999})
