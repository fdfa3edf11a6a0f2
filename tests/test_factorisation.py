"""Factorisation machines: against numerical gradients, and against a transcription of the formulas."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse

import factor_references as reference
import references
from hogwild import FactorisationMachine, FieldAwareFactorisationMachine, PassiveAggressive, Sequential, minimise
from hogwild.data import Chunk
from hogwild.errors import DataError, ParameterError
from hogwild.rules import named as rule_named

N, D, RANK = 60, 9, 3
FIELDS = np.array([0, 0, 1, 1, 1, 2, 2, 3, 3])
KINDS = {
    "fm": (FactorisationMachine, {}, None),
    "ffm": (FieldAwareFactorisationMachine, {"fields": FIELDS}, FIELDS),
}


def rows(layout="sparse", seed=0):
    random = np.random.default_rng(seed)
    values = random.standard_normal((N, D)) if layout != "binary" else np.ones((N, D))
    table = np.where(random.random((N, D)) < (1 if layout == "dense" else 0.5), values, 0).astype(np.float32)
    return table if layout == "dense" else scipy.sparse.csr_array(table)


def labels(X, loss, seed=1):
    random = np.random.default_rng(seed)
    z = X @ random.standard_normal(D) + 0.5 * random.standard_normal(N)
    return z if loss == "squared" else np.where(z > 0, 1.0, -1.0)


def made(kind, layout="sparse", loss="logistic", **more):
    X = rows(layout)
    problem, own, fields = KINDS[kind]
    options = {"rank": RANK, "spread": 0.3, "l2": 0.0, "l2_factors": 0.0, **own, **more}
    return problem((X, labels(X, loss)), loss, **options), scipy.sparse.csr_array(X), labels(X, loss), fields


def parted(problem, state):
    """Weights, intercept and factors without what fills up their rows, in double precision."""
    factors = state[2][:, 0].reshape(-1, problem.padded)[:, :RANK].astype(float)
    return state[0][:, 0].astype(float), float(state[1][0, 0]), factors


def measured(problem, state):
    walk = problem.data.in_order()
    return problem.metrics(sum(problem.measure(walk[k], state) for k in range(len(walk))))


def drawn(problem, rule="sgd"):
    """Fresh parameters, the weights too with values of some size."""
    state = problem.start(rule_named(rule))
    random = np.random.default_rng(5)
    state[0][:, 0] = random.standard_normal(D)
    state[1][0, 0] = 0.3
    return state


@pytest.mark.parametrize(
    ("layout", "normalise"), [("sparse", False), ("sparse", True), ("binary", True), ("dense", False)]
)
@pytest.mark.parametrize("kind", KINDS)
def test_scores_and_figures_are_those_of_the_formula(kind, layout, normalise):
    problem, X, y, fields = made(kind, layout, normalise=normalise, l2=0.1, l2_factors=0.2)
    state = drawn(problem)
    w, b, factors = parted(problem, state)
    z = reference.scores(X, w, b, factors, fields, normalise)
    found = measured(problem, state)
    assert found["loss"] == pytest.approx(references.LOSSES["logistic"](z, y, 0.0)[0].mean(), rel=1e-5)
    assert found["accuracy"] == np.mean((z > 0) == (y > 0))
    whole = reference.objective(
        X, y, w, b, factors, "logistic", l2=0.1, l2_factors=0.2, fields=fields, normalise=normalise
    )
    assert found["loss"] + problem.penalty(state) == pytest.approx(whole, rel=1e-5)
    np.testing.assert_allclose(problem.model(state, {}).decide(rows(layout))[:, 0], z, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_is_along_the_numerical_gradient(kind, loss):
    problem, X, y, fields = made(kind, loss=loss)
    rule, rate, tiny = rule_named("sgd"), 1e-4, 1e-5
    descend, sync = problem.kernel(rule, "free", 1), problem.sync_buffer("free")
    chunk = problem.data.in_order()[0]
    for i in (0, 7, 23):
        before, after = drawn(problem), drawn(problem)
        descend(Chunk(chunk.rows, np.array([i], chunk.order.dtype)), np.full(1, rate, np.float32), after, sync)
        w, b, factors = parted(problem, before)
        columns, x = reference.entries(X, i, problem.normalise)

        def cost(w, b, factors, columns=columns, x=x, label=y[i]):
            return float(references.LOSSES[loss](reference.score(columns, x, w, b, factors, fields), label, 0.0)[0])

        for part, (old, new) in enumerate(zip(parted(problem, before), parted(problem, after), strict=True)):
            gradient = np.zeros(np.shape(old))
            for at in np.ndindex(gradient.shape):
                nudge = np.zeros_like(gradient)
                nudge[at] = tiny
                sides = [[w, b, factors], [w, b, factors]]
                sides[0][part], sides[1][part] = old + nudge, old - nudge
                gradient[at] = (cost(*sides[0]) - cost(*sides[1])) / (2 * tiny)
            step = (np.asarray(old) - new) / rate
            # Float32 parameters of size 1 are known to 1e-7, which a step of 1e-4 makes 1e-3 of a gradient.
            np.testing.assert_allclose(step, gradient, atol=4e-3, rtol=4e-3)
            assert np.abs(gradient).max() > 0.01


@pytest.mark.parametrize(
    ("rule", "loss", "penalised"),
    [
        ("adagrad", "logistic", True), ("ftrl", "logistic", True),
        *([("adagrad", "squared", False), ("sgd", "logistic", False)] if references.ALL else []),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", KINDS)
def test_one_worker_takes_the_steps_of_the_transcription(kind, rule, loss, penalised):
    penalties = {"l2": 0.01, "l2_factors": 0.02} if penalised else {}
    problem, X, y, fields = made(kind, loss=loss, **penalties)
    chosen = rule_named(rule)
    state = problem.start(chosen)
    start = parted(problem, state)[2]
    chunk = problem.data.in_order()[0]
    order = np.random.default_rng(3).permutation(np.tile(np.arange(N), 3)).astype(chunk.order.dtype)
    rates = np.linspace(0.1, 0.02, len(order)).astype(np.float32)
    problem.kernel(chosen, "free", 1)(Chunk(chunk.rows, order), rates, state, problem.sync_buffer("free"))
    expected = reference.transcribe(
        X, y, order, rates.astype(float), rule, loss, start, fields=fields, normalise=problem.normalise, **penalties
    )
    for found, wanted in zip(parted(problem, state), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    assert np.abs(expected[2] - start).max() > 0.05  # it went somewhere


@pytest.mark.parametrize("rule", ["adagrad", "ftrl"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_fills_up_rows_of_factors_stays_zero(kind, rule):
    problem, *_ = made(kind, l2=0.01, l2_factors=0.02)
    run = minimise(problem, rule, "cosine", "serial", budget=3)
    filling = run.state[2][:, 0].reshape(-1, problem.padded)[:, RANK:]
    assert filling.size
    assert (filling == 0).all()


def test_rows_of_factors_begin_where_cache_lines_do():
    problem, *_ = made("fm", rank=16)
    for rule in ("sgd", "adagrad"):
        assert problem.start(rule_named(rule))[2].ctypes.data % 64 == 0


def test_factors_are_the_same_for_the_same_seed_and_for_no_other():
    one, same, other = (made("fm", seed=seed)[0].start(rule_named("ftrl"))[2] for seed in (1, 1, 2))
    assert one.tobytes() == same.tobytes() != other.tobytes()
    assert not one[:, 1:].any()


def test_without_factors_it_is_a_linear_model():
    from hogwild import Constant, Linear

    X = rows()
    y = labels(X, "logistic")
    with_factors = minimise(
        FactorisationMachine((X, y), l2=1e-2, spread=0.0), "adagrad", Constant(0.1), "serial", budget=3
    )
    linear = minimise(Linear((X, y), l2=1e-2), "adagrad", Constant(0.1), "serial", budget=3)
    np.testing.assert_allclose(with_factors.model.weights, linear.model.weights[:, 0], rtol=1e-4, atol=1e-6)
    assert (with_factors.model.factors == 0).all()


# What is refused


def test_several_classes_are_refused_with_a_way_out():
    with pytest.raises(DataError, match=r"there are 3 classes.*OneVsRestClassifier"):
        FactorisationMachine((rows(), np.arange(N) % 3))


@pytest.mark.parametrize("rule", [PassiveAggressive(), Sequential()])
def test_rules_for_linear_models_are_refused(rule):
    with pytest.raises(ParameterError, match=rf"{type(rule).__name__} is for linear models"):
        minimise(made("fm")[0], rule, "cosine", "serial", budget=1)


@pytest.mark.parametrize(("name", "value"), [("rank", 0), ("rank", 2.5), ("l2", -1), ("l2_factors", np.inf)])
def test_parameters_are_checked(name, value):
    with pytest.raises(ParameterError, match=f"The '{name}' parameter must be"):
        made("fm", **{name: value})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([0, 1], "an entry for each of 9 features. Got 2"),
        ([-1] * D, "count from 0"),
        ([0.5] * D, "whole numbers"),
        (None, "does not say of which field"),
    ],
)
def test_fields_are_checked(fields, message):
    with pytest.raises(ParameterError, match=message):
        made("ffm", fields=fields)


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_asked_is_described_in_plain_values(kind):
    described = made(kind, l2=0.5)[0].describe()
    assert json.loads(json.dumps(described)) == described
    assert (described["problem"], described["rank"], described["l2"]) == (kind, RANK, 0.5)
