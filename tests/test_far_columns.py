"""Columns far from zero are moved and scaled while a model is trained, and nobody but the clock can tell."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression

import hogwild.data
from hogwild import Budget, Linear, minimise
from hogwild.data.packing.pack import pack
from hogwild.problems.standardisation import standardisation_for
from hogwild.rules import COORDINATE_RULES, SGD, Sequential
from hogwild.rules import named as rule_named
from hogwild.run import WarmStart


def far(seed=0, rows=400, columns=5):
    """Columns of any size, some of them far from zero."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((rows, columns)) * 10.0 ** random.uniform(-2, 2, columns)
    return X + np.array([1_000.0, 0.0, -3.0, 0.0, 50.0])[:columns]


def signs(X, seed=1):
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.where(standard @ np.random.default_rng(seed).standard_normal(X.shape[1]) > 0.3, 1.0, -1.0)


def objective(model, X, y, l2):
    margins = y * model.decide(X).ravel()
    return np.logaddexp(0, -margins).mean() + l2 / 2 * (model.weights.astype(np.float64) ** 2).sum()


def state_of(problem, rule, seed=0):
    random = np.random.default_rng(seed)
    return tuple(random.standard_normal(part.shape) for part in problem.start(rule))


@pytest.mark.parametrize("strategy", ["serial", "hogwild"])
@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_raw_data_is_fitted_as_well_as_by_a_method_that_minds_no_scale(load, strategy):
    X, y = load(return_X_y=True)
    y, l2 = np.where(y == 1, 1.0, -1.0), 1e-3
    best = LogisticRegression(C=1 / (l2 * len(y)), solver="newton-cholesky", tol=1e-8, max_iter=1_000).fit(X, y)
    margins = y * best.decision_function(X)
    least = np.logaddexp(0, -margins).mean() + l2 / 2 * (best.coef_**2).sum()
    run = minimise(Linear((X, y), l2=l2), strategy=strategy)
    assert objective(run.model, X, y, l2) == pytest.approx(least, rel=0.01)


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array, lambda X: X.astype(np.float32)])
def test_what_a_run_tells_is_what_its_model_does_on_data_as_it_is(kind):
    X = far()
    y = signs(X)
    held_out = slice(300, None)
    run = minimise(Linear((kind(X)[:300], y[:300]), l2=1e-3), test=(kind(X)[held_out], y[held_out]), budget=30)
    assert run.config["standardise"]
    record = run.history[-1]
    assert record["objective"] == pytest.approx(objective(run.model, X[:300], y[:300], 1e-3), rel=1e-3)
    assert record["test_loss"] == pytest.approx(objective(run.model, X[held_out], y[held_out], 0.0), rel=1e-3)


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_held_out_data_may_lack_the_last_columns_or_be_of_another_layout(kind):
    X = far()
    X[300:, 4] = 0
    y = signs(X)
    run = minimise(Linear((X[:300], y[:300])), test=(kind(X[300:, :4]), y[300:]), budget=10)
    assert run.history[-1]["test_loss"] == pytest.approx(objective(run.model, X[300:], y[300:], 0.0), rel=1e-3)
    ones = scipy.sparse.csr_array(np.ones((100, 3)))  # a layout without values
    run = minimise(Linear((X[:300], y[:300])), test=(ones, y[300:]), budget=10)
    dense = np.hstack([np.ones((100, 3)), np.zeros((100, 2))])
    assert run.history[-1]["test_loss"] == pytest.approx(objective(run.model, dense, y[300:], 0.0), rel=1e-3)


def test_several_classes_and_numbers():
    X = far(rows=600)
    classes = np.digitize((X - X.mean(axis=0))[:, 0] / X[:, 0].std(), [-0.5, 0.5])
    run = minimise(Linear((X, classes), "softmax", l2=1e-4), budget=50)
    assert np.mean(run.model.predict(X) == classes) == pytest.approx(run.history[-1]["accuracy"])
    assert run.history[-1]["accuracy"] > 0.9
    numbers = 7 + (X - X.mean(axis=0)) / X.std(axis=0) @ [1.0, -2.0, 0.5, 0.0, 3.0]
    run = minimise(Linear((X, numbers), "squared", l2=0), budget=50)
    assert run.model.predict(X).ravel() == pytest.approx(numbers, abs=0.05)


def test_from_a_file_in_memory_and_packed(tmp_path):
    X = far()
    y = signs(X)
    dump_svmlight_file(X, y, str(tmp_path / "far.svm"))
    pack([tmp_path / "far.svm"], tmp_path / "packed")
    models = []
    for source in (tmp_path / "far.svm", tmp_path / "packed"):
        problem = Linear(source, l2=1e-3)
        assert problem.frame is not None
        assert problem.data.epoch(0, 0)[0].rows.layout == "dense"
        models.append(minimise(problem, strategy="serial", budget=30).model)
    assert np.array_equal(models[0].weights, models[1].weights)
    assert models[0].decide(X) == pytest.approx(models[1].decide(X))


@pytest.mark.parametrize("rule", sorted(COORDINATE_RULES))
def test_there_and_back_nothing_has_changed(rule):
    rule = rule_named(rule)
    problem = Linear((far(), np.arange(400) % 3)).for_rule(rule)
    state = state_of(problem, rule)
    back = problem.from_training_space(problem.to_training_space(state, rule), rule)
    for part, kept in zip(back, state, strict=True):
        assert part == pytest.approx(kept, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("rule", ["adagrad", "ftrl", "momentum"])
def test_a_run_goes_on_where_another_ended(rule):
    X = far()
    y = signs(X)
    first = minimise(Linear((X, y), l2=1e-3), rule, budget=20)
    later = far(seed=5)  # with a middle of its own
    after = minimise(Linear((later, signs(later)), l2=1e-3), rule, init=WarmStart(first.state), budget=Budget(epochs=1))
    at_start = next(event["loss"] for event in after.events if event["event"] == "training")
    assert at_start == pytest.approx(objective(first.model, later, signs(later), 0.0), rel=1e-3)
    assert after.history[-1]["loss"] < 2 * at_start


def test_columns_stay_as_they_are_where_that_is_asked_or_nothing_is_won():
    X = far()
    y = signs(X)
    assert Linear((X, y)).frame is not None
    assert Linear((X, y), standardise=False).frame is None
    assert Linear((X, y), intercept=False).frame is None
    assert Linear((X - X.mean(axis=0), y)).frame is None
    assert Linear((X, y)).for_rule(Sequential()).frame is None
    assert Linear((X, y)).for_rule(SGD()).frame is not None
    assert np.all(Linear((X, y), l1=1e-3).frame.scale == 1)
    rare = scipy.sparse.csr_array(np.where(np.arange(400)[:, None] % 4 == 0, X, 0.0))
    assert Linear((rare, y)).frame is None


def test_a_constant_column_and_a_nearly_constant_one_do_no_harm():
    X = far()
    X[:, 1], X[:, 3] = 5.0, 1e4 + 1e-5 * np.arange(400)
    y = signs(np.delete(X, [1, 3], axis=1))
    frame = standardisation_for(hogwild.data.open(X, y), scaled=True)
    assert frame.scale[[1, 3]].tolist() == [1, 1]
    run = minimise(Linear((X, y), l2=1e-3), budget=50)
    assert np.isfinite(run.model.weights).all()
    assert run.history[-1]["accuracy"] > 0.95


@pytest.mark.parametrize("middle", [0.0, 0.8, 1.5, 3.0, 40.0])
@pytest.mark.parametrize("rare", [False, True], ids=["all vary", "one hardly ever does"])
def test_a_glance_decides_as_a_long_look_does(middle, rare, monkeypatch):
    X = np.random.default_rng(0).standard_normal((3_000, 4)) + np.array([0.0, 0.0, middle, 0.0])
    if rare:
        X[:, 3] = 7.0
        X[::500, 3] += 1.0  # constant in most glances, and far from zero
    glanced = standardisation_for(hogwild.data.open(X, np.zeros(3_000)), scaled=True)
    monkeypatch.setattr("hogwild.problems.standardisation.GLANCED", 3_000)
    looked = standardisation_for(hogwild.data.open(X, np.zeros(3_000)), scaled=True)
    assert (glanced is None) == (looked is None) == (middle < 2 and not rare)
