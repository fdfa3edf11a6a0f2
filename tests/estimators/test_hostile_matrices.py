"""Damaged matrices of every format, fields out of range, and one estimator that several threads fit."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import hogwild
from hogwild import FieldAwareFactorisationMachine, HogwildClassifier, HogwildFMClassifier, HogwildOneClassSVM, minimise
from hogwild.errors import ParameterError

X = np.random.default_rng(0).standard_normal((60, 4))
Y = (X[:, 0] > 0).astype(int)


def columns_beyond(format: str, column: int) -> Any:
    made: Any = scipy.sparse.csr_matrix(X).asformat(format)
    if format == "lil":
        made.rows[0] = [column] * 4
    elif format == "dok":
        made._dict[0, column] = 1.0
    elif format == "coo":
        made.col = made.col.copy()
        made.col[2] = column
    else:
        made.indices = made.indices.copy()
        made.indices[2] = column
    return made


def lists_that_do_not_fit() -> Any:
    made = scipy.sparse.csr_matrix(X).tolil()
    made.rows[0] = [0] * 1000
    return made


DAMAGED = [
    *[
        columns_beyond(format, column)
        for format in ("csr", "csc", "bsr", "coo", "lil", "dok")
        for column in (10**8, -5)
    ],
    lists_that_do_not_fit(),
]


@pytest.mark.parametrize("matrix", DAMAGED, ids=lambda matrix: matrix.format)
@pytest.mark.filterwarnings("ignore:Maximum number")
@pytest.mark.parametrize("kind", [HogwildClassifier, HogwildFMClassifier])
def test_a_damaged_matrix_is_refused(kind: Callable[..., Any], matrix: Any) -> None:
    """SciPy and compiled code would read and write outside of arrays."""
    fitted = kind(max_iter=3).fit(X, Y)
    for attempt in (lambda: kind(max_iter=3).fit(matrix, Y), lambda: fitted.predict(matrix)):
        with pytest.raises(ValueError, match=r"(?i)matrix|index|column|coordinates|within"):
            attempt()


@pytest.mark.parametrize("largest", [2**31 - 1, 2**32 - 1, 2**32, 2**62])
def test_fields_beyond_their_type_are_refused(largest: int) -> None:
    with pytest.raises(ParameterError, match=r"'fields'.*The largest is 2,147,483,646"):
        minimise(FieldAwareFactorisationMachine((X, Y), fields=[0, 0, 1, largest]), strategy="serial", budget=2)


@pytest.mark.parametrize("kind", [HogwildClassifier, HogwildOneClassSVM, hogwild.HogwildRegressor])
def test_threads_that_fit_one_estimator_take_turns(kind: Callable[..., Any]) -> None:
    rows = np.random.default_rng(0).standard_normal((3000, 4))
    labels = (rows[:, 0] > 0).astype(int)
    failures: list[BaseException] = []

    def fit(model: Any, part: Any) -> None:
        try:
            model.fit(part, labels)
        except BaseException as failure:
            failures.append(failure)

    for _ in range(30):
        model = kind(max_iter=5, tol=None)
        threads = [threading.Thread(target=fit, args=(model, part)) for part in (rows, rows[:, :1], rows[:, :3])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert np.ravel(model.coef_).shape == (model.n_features_in_,)
    assert failures == []


@pytest.mark.filterwarnings("ignore:Maximum number")
def test_an_estimator_that_threads_take_turns_with_is_copied_and_pickled() -> None:
    model = HogwildClassifier(max_iter=3, random_state=0).fit(X, Y)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert (again.fit(X, Y).predict(X) == model.predict(X)).all()
