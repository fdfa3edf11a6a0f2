"""``n_workers_``: the number of workers that a fit used."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from hogwild import HogwildClassifier, HogwildFMRegressor, HogwildRecommender, HogwildRegressor
from hogwild.machine import usable_cores

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 5))


def test_one_worker_by_default() -> None:
    assert HogwildClassifier(random_state=0).fit(X, X[:, 0] > 0).n_workers_ == 1
    assert HogwildRegressor(random_state=0).fit(X, X[:, 0]).n_workers_ == 1


def test_a_strategy_says_how_many_there_may_be() -> None:
    model = HogwildRegressor(strategy="hogwild", n_jobs=2, random_state=0).fit(X, X[:, 0])
    assert model.n_workers_ in (1, 2)
    assert HogwildFMRegressor(n_jobs=1, random_state=0, max_iter=1).fit(X, X[:, 0]).n_workers_ == 1
    ratings = np.arange(50) % 7, np.arange(50) % 5, np.ones(50)
    assert HogwildRecommender(4, n_jobs=1, max_iter=1).fit(ratings).n_workers_ == 1


@pytest.mark.skipif(usable_cores() < 2, reason="needs two cores")
def test_classes_are_trained_side_by_side() -> None:
    rows = sparse.random(20_000, 300, 0.05, "csr", random_state=0)
    labels = RNG.integers(0, 20, 20_000)
    assert HogwildClassifier(n_jobs=2, max_iter=2, tol=None, random_state=0).fit(rows, labels).n_workers_ == 2
    assert HogwildClassifier(n_jobs=1, max_iter=2, tol=None, random_state=0).fit(rows, labels).n_workers_ == 1
