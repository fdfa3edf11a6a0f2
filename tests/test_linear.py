from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import references
from hogwild import Constant, Linear, Serial, WarmStart, minimise
from hogwild.data import Chunk, as_dataset
from hogwild.errors import DataError, ParameterError
from hogwild.kernels import linear_build, loss_sums
from hogwild.losses import LOSSES
from hogwild.rules import COORDINATE_RULES
from hogwild.rules import named as rule_named

N, D = 90, 12


def sparse(seed=0, rows=N, features=D, share=0.4):
    random = np.random.default_rng(seed)
    present = random.random((rows, features)) < share
    return scipy.sparse.csr_array(np.where(present, random.standard_normal((rows, features)), 0).astype(np.float32))


def signs(X, seed=1):
    z = X @ np.random.default_rng(seed).standard_normal(X.shape[1])
    return np.where(z > 0, 1.0, -1.0)


def values(problem, seed=2):
    """Some weights and intercepts for a problem."""
    random = np.random.default_rng(seed)
    shapes = (problem.source.n_features * problem.n_outputs, 1), (problem.n_outputs, 1)
    return tuple(random.standard_normal(shape).astype(np.float32) for shape in shapes)


def measured(problem, state):
    walk = problem.data.in_order()
    return problem.metrics(sum(problem.measure(walk[k], state) for k in range(len(walk))))


# What is asked


@pytest.mark.parametrize("name", ["l1", "l2"])
@pytest.mark.parametrize("strength", [-1e-9, float("nan"), float("inf")])
def test_strengths_are_finite_and_not_negative(name, strength):
    with pytest.raises(ParameterError, match=f"The '{name}' parameter must be a number of at least 0"):
        Linear((sparse(), signs(sparse())), **{name: strength})


def test_an_unknown_loss_is_refused_before_the_data_is_looked_at():
    with pytest.raises(ParameterError, match="Did you mean 'hinge'"):
        Linear("no-such-file.svm", "hing")


def test_labels_are_judged_by_the_loss():
    X = sparse()
    assert Linear((X, signs(X)), "hinge").n_outputs == 1
    assert Linear((X, np.arange(N) % 3), "hinge").n_outputs == 3
    assert Linear((X, np.arange(N) % 3), "squared").n_outputs == 1
    with pytest.raises(DataError, match="every label is 1"):
        Linear((X, np.ones(N)), "hinge")


def test_poisson_refuses_negative_labels_before_training():
    with pytest.raises(DataError, match="negative"):
        minimise(Linear((sparse(), np.arange(N) - 5.0), "poisson"), "sgd", Constant(0.1), Serial(), budget=1)


def test_what_was_asked_is_described_in_plain_values():
    import json

    X = sparse()
    described = Linear((X, signs(X)), "huber:0.5", l1=1, l2=2).describe()
    assert described["loss"] == "huber:0.5"
    assert (described["l1"], described["l2"], described["rows"], described["features"]) == (1.0, 2.0, N, D)
    assert json.loads(json.dumps(described)) == described
    balanced = Linear((X, signs(X)), class_weight={1: 2.0, -1: 1.0}).describe()
    assert json.dumps(balanced)


# Parameters, locks and shares


@pytest.mark.parametrize("rule", COORDINATE_RULES)
@pytest.mark.parametrize("classes", [2, 4])
def test_fresh_parameters_are_zero_with_fresh_memory(rule, classes):
    problem = Linear((sparse(), np.arange(N) % classes))
    weights, bias = problem.start(rule_named(rule))
    outputs = 1 if classes == 2 else classes
    assert weights.shape == (D * outputs, len(rule_named(rule).initial))
    assert bias.shape == (outputs, len(rule_named(rule).initial))
    assert weights.dtype == bias.dtype == np.float32
    for part in (weights, bias):
        np.testing.assert_array_equal(part, np.tile(np.float32(rule_named(rule).initial), (len(part), 1)))


def test_locks_and_turns():
    problem = Linear((sparse(), np.arange(N) % 3))
    assert problem.sync_buffer("locked").shape == (
        D + 1,
    )  # a lock per feature, whatever the classes, and the intercept's
    assert problem.sync_buffer("turns")[0] == 0  # the first turn is that of term 0
    assert not problem.sync_buffer("locked").any()


def test_each_term_carries_its_share_of_the_penalty():
    """A coordinate in d of n rows gets n/d of it each time: over an epoch of no gradient, exactly the whole."""
    X = sparse(share=0.2)
    rate, l2 = 1e-3, 0.5
    problem = Linear((X, np.zeros(N)), "squared", l2=l2, intercept=False)
    rule = rule_named("sgd")
    state = problem.start(rule)
    state[0][:, 0] = 1
    chunk = problem.data.epoch(0, 0)[0]
    silent = Chunk(type(chunk.rows)(**{
        **{name: getattr(chunk.rows, name) for name in chunk.rows.__slots__}, "weights": np.zeros(N, np.float32),
    }), chunk.order)  # fmt: skip
    problem.kernel(rule, "free", 1)(silent, np.full(N, rate, np.float32), state, problem.sync_buffer("free"))
    present = np.bincount(X.indices, minlength=D)
    expected = (1 + rate * l2 * N / present) ** -present.astype(float)
    np.testing.assert_allclose(state[0][:, 0], expected, rtol=1e-4)
    np.testing.assert_allclose(state[0][:, 0], np.exp(-rate * l2 * N), rtol=1e-3)  # the same for rare and frequent


def test_a_feature_that_no_row_has_stays_at_zero():
    X = scipy.sparse.csr_array((sparse().data, sparse().indices, sparse().indptr), (N, D + 3))
    run = minimise(Linear((X, signs(X)), "logistic", l1=1e-3, l2=1e-2), "adagrad", Constant(0.1), Serial(), budget=2)
    assert (run.model.weights[D:] == 0).all()
    assert (run.model.weights[:D] != 0).any()


def test_rows_of_weight_zero_do_not_matter():
    X, y = sparse(), signs(sparse())
    weights = np.r_[np.ones(N // 2), np.zeros(N - N // 2)]
    spoilt = np.r_[y[: N // 2], -y[N // 2 :]]
    runs = [
        minimise(Linear((X, labels, weights), "squared", l2=1e-3), "sgd", Constant(0.05), Serial(), budget=2)
        for labels in (y, spoilt)
    ]
    assert runs[0].model.weights.tobytes() == runs[1].model.weights.tobytes()
    assert runs[0].loss == runs[1].loss


def test_without_an_intercept_there_is_none():
    X = sparse()
    run = minimise(
        Linear((X, 5 + signs(X)), "squared", l2=1e-3, intercept=False), "sgd", Constant(0.05), Serial(), budget=2
    )
    assert run.model.intercept.tolist() == [0]


# Figures


def reference_figures(X, y, w, b, loss):
    return references.objective(X, y, w, b, loss.name, parameter=loss.parameter)


@pytest.mark.parametrize("loss", [LOSSES[name] for name in ("logistic", "squared", "poisson")], ids=str)
def test_the_loss_is_the_mean_over_the_rows(loss):
    X = sparse()
    y = signs(X) if loss.targets == "classes" else np.arange(N) % 4.0
    problem = Linear((X, y), loss)
    state = values(problem)
    expected = reference_figures(X, y, state[0][:, 0].astype(float), float(state[1][0, 0]), loss)
    assert measured(problem, state)["loss"] == pytest.approx(expected, rel=1e-5)


def test_weights_of_rows_count_in_loss_and_accuracy():
    from sklearn.metrics import accuracy_score

    X, weights = sparse(), np.random.default_rng(3).random(N)
    y = signs(X)
    problem = Linear((X, y, weights))
    state = values(problem)
    w, b = state[0][:, 0].astype(float), float(state[1][0, 0])
    found = measured(problem, state)
    assert found["loss"] == pytest.approx(references.objective(X, y, w, b, "logistic", weights=weights), rel=1e-5)
    predicted = np.where(X @ w + b > 0, 1.0, -1.0)
    assert found["accuracy"] == pytest.approx(accuracy_score(y, predicted, sample_weight=weights))


def test_class_weights_count_in_the_loss_and_not_in_the_accuracy():
    X, y = sparse(), signs(sparse())
    plain, weighted = Linear((X, y)), Linear((X, y), class_weight={1: 3.0, -1: 0.5})
    state = values(plain)
    w, b = state[0][:, 0].astype(float), float(state[1][0, 0])
    each = np.where(y > 0, 3.0, 0.5)
    found = measured(weighted, state)
    assert found["loss"] == pytest.approx(references.objective(X, y, w, b, "logistic", weights=each), rel=1e-5)
    assert found["accuracy"] == measured(plain, state)["accuracy"]


def test_r2_is_that_of_scikit_learn():
    from sklearn.metrics import r2_score

    X, y = sparse(), np.random.default_rng(4).standard_normal(N) + 7
    weights = np.random.default_rng(5).random(N)
    problem = Linear((X, y, weights), "squared")
    state = values(problem)
    predicted = X @ state[0][:, 0].astype(float) + float(state[1][0, 0])
    assert measured(problem, state)["r2"] == pytest.approx(r2_score(y, predicted, sample_weight=weights), rel=1e-4)


def test_the_accuracy_of_several_classes():
    X, y = sparse(), np.arange(N) % 4
    problem = Linear((X, y), "softmax")
    state = values(problem)
    scores = X @ state[0].reshape(D, 4).astype(float) + state[1][:, 0]
    found = measured(problem, state)
    assert found["accuracy"] == pytest.approx((scores.argmax(axis=1) == y).mean())
    assert found["loss"] == pytest.approx(
        np.mean([references.softmax(s, k)[0] for s, k in zip(scores, y, strict=True)])
    )


@settings(deadline=None)
@given(st.floats(0, 10), st.floats(0, 10))
def test_the_penalty_is_the_documented_one(l1, l2):
    problem = Linear((sparse(), signs(sparse())), l1=l1, l2=l2)
    state = values(problem)
    w = state[0][:, 0].astype(float)
    assert problem.penalty(state) == pytest.approx(l1 * np.abs(w).sum() + l2 / 2 * (w**2).sum())


def test_the_models_scores_are_those_of_the_training():
    X, y = sparse(), signs(sparse())
    problem = Linear((X, y))
    state = values(problem)
    model = problem.model(state, {})
    scores = X @ state[0][:, 0].astype(float) + float(state[1][0, 0])
    np.testing.assert_allclose(model.decide(X)[:, 0], scores, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(model.predict(X), np.where(scores > 0, 1.0, -1.0))
    np.testing.assert_allclose(model.probabilities_of(model.decide(X))[:, 1], 1 / (1 + np.exp(-scores)), rtol=1e-5)


# Other data, and less of it


def test_other_data_may_have_fewer_features_but_not_more():
    problem = Linear((sparse(), signs(sparse())))
    fewer = sparse(features=D - 4)
    assert problem.encoded(as_dataset((fewer, signs(fewer)))).n_features == D - 4
    more = sparse(features=D + 1)
    with pytest.raises(ParameterError, match=f"has {D + 1} features.*has {D}.*extra='ignore'"):
        problem.encoded(as_dataset((more, signs(more))))


def test_other_data_must_have_known_labels():
    problem = Linear((sparse(), signs(sparse())))
    with pytest.raises(DataError, match="the label 3 is not one of the classes"):
        problem.encoded(as_dataset((sparse(), np.full(N, 3.0))))


def test_a_sample_is_the_same_problem_on_fewer_rows():
    X = sparse(rows=400)
    y = np.r_[np.zeros(396), np.arange(4)]  # classes that a sample may well miss
    problem = Linear((X, y), "hinge", l1=0.1, l2=0.2, intercept=False, class_weight="balanced")
    small = problem.sample(50, seed=0)
    assert small.source.n_rows == 50
    assert (small.l1, small.l2, small.intercept, small.n_outputs) == (0.1, 0.2, False, 4)
    assert small.labels is problem.labels
    assert np.isfinite(small._class_weights).all()


def test_kernels_read_float64_values_as_well():
    X, y = sparse(), signs(sparse())
    runs = [
        minimise(Linear((X.astype(kind), y), "squared", l2=1e-3), "sgd", Constant(0.05), Serial(), budget=2)
        for kind in (np.float32, np.float64)
    ]
    assert runs[0].model.weights.tobytes() == runs[1].model.weights.tobytes()
    assert runs[0].model.weights.any()


def test_one_compiled_loop_serves_arrays_that_may_be_written_and_others():
    X = sparse()
    y, kernels = signs(X), []
    for writeable in (True, False):
        for array in (X.data, X.indices, X.indptr, y):
            array.flags.writeable = writeable
        problem = Linear((X, y), "logistic")
        minimise(problem, strategy=Serial(), schedule=Constant(0.1), budget=1)
        kernels.append(problem.kernel(rule_named("adagrad"), "free", 1).kernel)
    assert kernels[0] is kernels[1]
    types = [signature[:5] for signature in kernels[0].loop.signatures]
    assert types
    assert not any(array.mutable for data in types for array in data)


@pytest.mark.parametrize("rate", [0.01, 0.001])
def test_a_penalty_is_not_rounded_away_where_steps_are_small(rate):
    y = np.tile([1.0, -1.0], 500)
    X = scipy.sparse.csr_matrix(10 * y[:, None])  # every row is satisfied: there is the penalty alone
    run = minimise(
        Linear((X, y), "hinge", l2=1e-5, intercept=False), "sgd", Constant(rate), "serial", budget=100,
        init=WarmStart((np.ones((1, 1)), np.zeros((1, 1)))),
    )  # fmt: skip
    assert 1 - run.model.weights[0, 0] == pytest.approx(1 - np.exp(-rate * 1e-5 * 1000 * 100), rel=0.02)


def test_losses_labels_and_predictions_share_one_loop_over_the_rows():
    X, y = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32), np.tile([-1.0, 1.0], 20)
    scoring, seen = linear_build.scoring("dense"), []
    for loss in ("logistic", "hinge", "squared"):
        problem = Linear((X, y), loss)
        chunk, state = problem.data.in_order()[0], values(problem)
        problem.measure(chunk, state)
        precise = replace(chunk.rows, labels=chunk.rows.labels.astype(np.float64))
        problem.measure(Chunk(precise, chunk.order), state)
        problem.model(state, {}).decide(X)
        seen.append(len(scoring.signatures))
    assert seen == seen[:1] * 3


def test_rows_of_several_blocks_add_up_like_one_block(monkeypatch):
    random = np.random.default_rng(0)
    problem = Linear((random.standard_normal((40, 3)).astype(np.float32), random.standard_normal(40)), "squared")
    chunk, state = problem.data.in_order()[0], values(problem)
    whole = problem.measure(chunk, state)
    monkeypatch.setattr(loss_sums, "BLOCK", 7)
    np.testing.assert_array_equal(problem.measure(chunk, state), whole)
