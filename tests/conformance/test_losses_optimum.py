"""Every loss, serial and lock-free, against the optimum that an exact solver finds."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import scipy.sparse

import references
from hogwild import Hogwild, Linear, Serial, minimise
from hogwild.losses import LOSSES
from hogwild.losses import named as loss_named

ROWS, FEATURES, NONZEROS, L2 = 1_600, 30, 24, 1e-2  # two chunks and a bit
BOTH = pytest.mark.parametrize("strategy", [Serial(), Hogwild(2)], ids=repr)
SMOOTH = [
    "logistic", "softmax", "squared-hinge", "modified-huber", "squared", "huber:0.5", "squared-epsilon-insensitive",
    "poisson",
]  # fmt: skip
ELSEWHERE = (
    "logistic",
    "hinge",
    "poisson",
    "huber:0.5",
    "epsilon-insensitive",
    "quantile:0.9",
)  # with Hogwild, or much alike
KINKED = ["hinge", "epsilon-insensitive", "quantile", "quantile:0.9"]


@cache
def matrix():
    random = np.random.default_rng(5)
    columns = np.sort(np.argsort(random.random((ROWS, FEATURES)), axis=1)[:, :NONZEROS], axis=1)
    values = random.standard_normal(columns.shape).astype(np.float32) / np.float32(np.sqrt(NONZEROS))
    indptr = np.arange(0, columns.size + 1, NONZEROS, dtype=np.int32)  # in 32 bits, for which most loops are compiled
    return scipy.sparse.csr_array((values.ravel(), columns.ravel().astype(np.int32), indptr), (ROWS, FEATURES))


@cache
def target(kind, classes=2):
    random = np.random.default_rng(6)
    z = matrix() @ random.standard_normal((FEATURES, classes)) + 0.3 * random.standard_normal(classes)
    if kind == "counts":
        return random.poisson(np.exp(z[:, 0])).astype(float)
    if kind == "real":
        return z[:, 0] + 0.3 * random.standard_t(4, ROWS) + 1
    noisy = z + 0.5 * random.gumbel(size=z.shape)
    return noisy.argmax(axis=1).astype(float) if classes > 2 else np.where(noisy[:, 0] > noisy[:, 1], 1.0, -1.0)


def lines(loss, y):
    """A loss with kinks as the largest of some lines in z: their slopes and offsets."""
    share, zero = loss.parameter, np.zeros_like(y)
    if loss.name == "hinge":
        return np.stack([-y, zero], 1), np.stack([1 + zero, zero], 1)
    if loss.name == "quantile":
        return np.stack([zero - share, zero + 1 - share], 1), np.stack([share * y, (share - 1) * y], 1)
    return np.stack([zero + 1, zero - 1, zero], 1), np.stack([-y - share, y - share, zero], 1)


@cache
def optimum(name):
    loss = loss_named(name)
    y = target(loss.targets)
    if name in KINKED:
        return references.piecewise_optimum(matrix(), y, lambda y: lines(loss, y), l2=L2)
    return references.smooth_optimum(matrix(), y, loss.name, l2=L2, parameter=loss.parameter)[0]


def test_every_loss_is_here():
    assert {loss_named(name).name for name in (*SMOOTH, *KINKED, "perceptron")} == set(LOSSES)


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        *((name, Serial()) for name in (*SMOOTH, *KINKED) if references.ALL or name not in ELSEWHERE),
        *(
            (name, Hogwild(2))
            for name in (*SMOOTH, *KINKED)
            if references.ALL or name in ("logistic", "hinge", "poisson")
        ),
    ],
    ids=repr,
)
def test_every_loss_comes_within_a_hundredth_of_its_optimum(name, strategy):
    problem = Linear((matrix(), target(loss_named(name).targets)), name, l2=L2)
    assert len(problem.data.epoch(0, 0)) > 1
    run = minimise(problem, "adagrad", "cosine", strategy, budget=40)
    assert run.objective == pytest.approx(optimum(name), rel=0.01)
    assert run.objective > optimum(name) - 1e-3 * abs(optimum(name))


@BOTH
def test_the_perceptron_separates_what_can_be_separated(strategy):
    """Its optimum is zero, and it is reached: every row is on its side of the plane."""
    w = np.random.default_rng(8).standard_normal(FEATURES)
    z = matrix() @ w
    wide = np.abs(z) > 0.3
    problem = Linear((matrix()[wide], np.sign(z[wide])), "perceptron")
    run = minimise(problem, "adagrad", "cosine", strategy, budget=40)
    assert run.result["accuracy"] == 1.0
    assert run.objective < 1e-3


@BOTH
@pytest.mark.parametrize("name", ["logistic", "softmax"])
def test_several_classes(name, strategy):
    """One against the rest is as many problems of two classes; softmax is scikit-learn's multinomial."""
    y = target("classes", 4)
    if name == "logistic":
        signs = np.where(y[:, None] == np.arange(4), 1.0, -1.0)
        best = sum(references.smooth_optimum(matrix(), s, "logistic", l2=L2)[0] for s in signs.T)
    else:
        from sklearn.linear_model import LogisticRegression

        found = LogisticRegression(C=1 / (L2 * ROWS), tol=1e-10, max_iter=5_000).fit(matrix(), y)
        logs = found.predict_log_proba(matrix())
        best = -logs[np.arange(ROWS), y.astype(int)].mean() + L2 / 2 * (found.coef_**2).sum()
    run = minimise(Linear((matrix(), y), name, l2=L2), "adagrad", "cosine", strategy, budget=40)
    assert run.objective == pytest.approx(best, rel=0.01)
    assert run.objective > best * (1 - 1e-4)


@BOTH
def test_weights_of_rows_and_classes(strategy):
    weights = np.random.default_rng(9).gamma(1.0, size=ROWS)
    y = target("classes")
    whole = weights * np.where(y > 0, 2.0, 0.5)
    best, w, b = references.smooth_optimum(matrix(), y, "logistic", l2=L2, weights=whole)
    problem = Linear((matrix(), y, weights), "logistic", l2=L2, class_weight={1: 2.0, -1: 0.5})
    run = minimise(problem, "adagrad", "cosine", strategy, budget=60)
    assert run.objective == pytest.approx(best, rel=0.01)
    np.testing.assert_allclose(run.model.weights[:, 0], w, atol=0.1 * np.abs(w).max())
    assert run.model.intercept[0] == pytest.approx(b, abs=0.1)
