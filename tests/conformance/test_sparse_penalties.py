"""L1 and the elastic net, against solvers of scikit-learn that are not stochastic gradient descent."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import scipy.sparse

import references
from hogwild import Hogwild, Linear, Serial, minimise

ROWS, FEATURES, NONZEROS = 1_600, 60, 24
BOTH = pytest.mark.parametrize("strategy", [Serial(), Hogwild(2)], ids=repr)
PENALTIES = {"lasso": (1e-2, 0.0), "elastic net": (5e-3, 1e-2)}


@cache
def data(loss):
    """Ten of sixty features matter."""
    random = np.random.default_rng(11)
    columns = np.sort(np.argsort(random.random((ROWS, FEATURES)), axis=1)[:, :NONZEROS], axis=1)
    values = random.standard_normal(columns.shape).astype(np.float32)
    indptr = np.arange(0, columns.size + 1, NONZEROS)
    X = scipy.sparse.csr_matrix((values.ravel(), columns.ravel(), indptr), (ROWS, FEATURES))
    w = np.where(np.arange(FEATURES) < 10, random.standard_normal(FEATURES), 0)
    z = X @ w + 0.5
    if loss == "squared":
        return X, z + 0.5 * random.standard_normal(ROWS)
    return X, np.where(z + random.logistic(size=ROWS) > 0, 1.0, -1.0)


@cache
def solved(loss, penalty):
    """(objective, weights) of the exact solution."""
    from sklearn.linear_model import ElasticNet, LogisticRegression

    (X, y), (l1, l2) = data(loss), PENALTIES[penalty]
    if loss == "squared":
        model = ElasticNet(alpha=l1 + l2, l1_ratio=l1 / (l1 + l2), tol=1e-8, max_iter=100_000)
    else:
        model = LogisticRegression(
            C=1 / (ROWS * (l1 + l2)), l1_ratio=l1 / (l1 + l2), solver="saga", tol=1e-6, max_iter=2_000, random_state=0
        )
    model.fit(X.toarray().astype(np.float64), y)
    w, b = model.coef_.ravel(), float(np.ravel(model.intercept_)[0])
    return references.objective(X, y, w, b, loss, l1=l1, l2=l2), w


@BOTH
@pytest.mark.parametrize("rule", ["adagrad", "ftrl"])
@pytest.mark.parametrize(("loss", "penalty"), [("logistic", "elastic net"), ("squared", "lasso")])
def test_the_penalised_optimum_is_that_of_scikit_learn(loss, penalty, rule, strategy):
    l1, l2 = PENALTIES[penalty]
    best, w = solved(loss, penalty)
    run = minimise(Linear(data(loss), loss, l1=l1, l2=l2), rule, "cosine", strategy, budget=60)
    assert run.objective == pytest.approx(best, rel=0.01)
    assert run.objective > best * (1 - 1e-4)
    found = run.model.weights[:, 0]
    np.testing.assert_allclose(found, w, atol=0.1 * np.abs(w).max())
    # What clearly matters is kept. What does not matter is next to nothing; with FTRL most of it is exactly zero.
    assert (found[np.abs(w) > 0.1] != 0).all()
    assert (w == 0).sum() > 10
    assert np.abs(found[w == 0]).max() < 0.02
    assert rule != "ftrl" or (found[w == 0] == 0).mean() > 0.5


def test_a_penalty_that_is_strong_enough_leaves_nothing():
    X, y = data("squared")
    strongest = np.abs(X.T @ (y - y.mean())).max() / ROWS
    run = minimise(Linear((X, y), "squared", l1=2 * strongest), "ftrl", "cosine", Serial(), budget=20)
    assert (run.model.weights == 0).all()
    assert run.model.intercept[0] == pytest.approx(y.mean(), abs=0.05)
