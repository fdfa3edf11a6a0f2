"""The rows of a minibatch begin from the same parameters, in compiled code as one by one."""

import numpy as np
import pytest

from hogwild.data.generate import kind
from hogwild.data.in_memory import InMemoryDataset
from hogwild.problems.linear import Linear
from hogwild.runtimes import Simulator
from hogwild.schedules import Constant
from hogwild.strategies import Synchronous
from hogwild.training.minimise import minimise


@pytest.mark.parametrize("rule", ["sgd", "adagrad"])
@pytest.mark.parametrize(("name", "features"), [("rcv1", 200), ("dense", 20)])
def test_compiled_minibatches_are_those_of_single_rows(rule, name, features, monkeypatch):
    rows = kind(name, rows=300, features=features, seed=1).rows
    problem = Linear(InMemoryDataset(rows, shuffled=True, name="rows"), "logistic", l2=1e-2)
    asked = []

    def trained(compiled):
        # A property of the class, because a problem whose features are renumbered is another object.
        monkeypatch.setattr(
            Linear, "steps_each_coordinate_once", property(lambda self: asked.append(compiled) or compiled)
        )
        run = minimise(problem, rule, Constant(0.1), Synchronous(2, accumulate=16), Simulator(), 2, seed=3)
        return np.append(run.model.weights.ravel(), run.model.intercept)

    compiled, single = trained(True), trained(False)
    assert set(asked) == {True, False}
    assert np.abs(single).max() > 1e-3
    np.testing.assert_allclose(compiled, single, rtol=1e-4, atol=1e-6)


def test_a_minibatch_of_all_rows_is_gradient_descent():
    random = np.random.default_rng(0)
    X, y = random.standard_normal((40, 3)), np.where(random.random(40) < 0.5, 1.0, -1.0)
    problem = Linear((X, y), "logistic", l2=0.0, standardise=False)
    run = minimise(problem, "sgd", Constant(0.5), Synchronous(1, accumulate=40), Simulator(), 3)
    w, b = np.zeros(3), 0.0
    for _ in range(3):
        slopes = -y / (1 + np.exp(y * (X @ w + b))) / 40
        w, b = w - 0.5 * X.T @ slopes, b - 0.5 * slopes.sum()
    np.testing.assert_allclose(run.model.weights.ravel(), w, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(run.model.intercept, b, rtol=1e-4, atol=1e-6)
