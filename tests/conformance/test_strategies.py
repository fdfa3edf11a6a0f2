"""Every strategy, with every rule, on one worker and on several: the same optimum."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import scipy.sparse

import references
from hogwild import Constant, Cosine, Hogwild, Linear, RoundRobin, Serial, minimise
from hogwild.data import as_dataset
from hogwild.rules import COORDINATE_RULES
from hogwild.strategies import STRATEGIES

ROWS, FEATURES, NONZEROS = 16_000, 40, 10  # ten chunks, so that workers do work at the same time
EPOCHS = 15
L2 = {"logistic": 1e-3, "squared": 1e-2}
SHARED = [name for name, kind in STRATEGIES.items() if kind.shares_memory and name != "serial"]


@cache
def data(loss):
    random = np.random.default_rng(7)
    columns = np.sort(np.argsort(random.random((ROWS, FEATURES)), axis=1)[:, :NONZEROS], axis=1)
    values = random.standard_normal(columns.shape).astype(np.float32) / np.float32(np.sqrt(NONZEROS))
    indptr = np.arange(0, columns.size + 1, NONZEROS, dtype=np.int32)  # in 32 bits, for which most loops are compiled
    X = scipy.sparse.csr_array((values.ravel(), columns.ravel().astype(np.int32), indptr), (ROWS, FEATURES))
    z = X @ (3 * random.standard_normal(FEATURES)) + 0.5
    if loss == "squared":
        return X, z + 0.5 * random.standard_normal(ROWS)
    return X, np.where(z + random.logistic(size=ROWS) > 0, 1.0, -1.0)


@cache
def problem(loss):
    built = Linear(as_dataset(data(loss)), loss, l2=L2[loss])
    assert len(built.data.epoch(0, 0)) >= 8
    return built


@cache
def optimum(loss):
    return references.smooth_optimum(*data(loss), loss, l2=L2[loss])[0]


@cache
def step(loss, rule):
    """What ``step="auto"`` chooses: by trials of one worker, so the same for every strategy."""
    run = minimise(problem(loss), rule, "cosine", Serial(), budget=EPOCHS)
    assert_reached(run, loss)
    (chosen,) = (event["step"] for event in run.events if event["event"] == "step chosen")
    return chosen


def epochs(strategy, workers):
    """Replicas that are averaged come as far in an epoch as one worker does in its share of it."""
    return EPOCHS * workers if strategy == "averaging" else EPOCHS


def assert_reached(run, loss, within=0.01):
    assert run.objective == pytest.approx(optimum(loss), rel=within)
    assert run.objective > optimum(loss) * (1 - 1e-5)  # nothing is better than the best


CASES = [
    (loss, rule, strategy, workers)
    for loss, rule in [*(("logistic", rule) for rule in COORDINATE_RULES), ("squared", "adagrad")]
    for strategy in SHARED
    for workers in (1, 2)
    # How workers wait for each other does not depend on the rule: with each there would be a loop more to compile.
    if references.ALL
    or (loss, rule) == ("logistic", "adagrad")
    or (strategy in ("hogwild", "averaging") and workers == 2)
    or (loss, rule, strategy) == ("logistic", "sgd", "locked")
]


@pytest.mark.parametrize(("loss", "rule", "strategy", "workers"), CASES)
def test_every_strategy_reaches_the_optimum_with_every_rule(loss, rule, strategy, workers):
    kind, budget = STRATEGIES[strategy](workers), epochs(strategy, workers)
    assert_reached(minimise(problem(loss), rule, Cosine(step(loss, rule)), kind, budget=budget), loss)


@pytest.mark.parametrize("strategy", ["hogwild", "averaging"] if references.ALL else ["hogwild"])
@pytest.mark.parametrize("rule", ["sgd", "momentum", "ftrl", "adam"])
def test_squared_loss_with_the_other_rules(rule, strategy):
    kind, budget = STRATEGIES[strategy](2), epochs(strategy, 2)
    assert_reached(minimise(problem("squared"), rule, Cosine(step("squared", rule)), kind, budget=budget), "squared")


@pytest.mark.parametrize("strategy", [name for name in SHARED if references.ALL or name != "round-robin"])
def test_more_workers_than_cores(strategy):
    run = minimise(problem("logistic"), "adagrad", "cosine", STRATEGIES[strategy](4), budget=epochs(strategy, 4))
    assert_reached(run, "logistic")
    assert run.config["workers"] == 4


@pytest.mark.parametrize("strategy", ["hogwild", "locked"])
def test_columns_that_are_numbered_with_64_bits(strategy):
    """They have loops of their own."""
    X, y = data("logistic")
    X = scipy.sparse.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), X.shape)
    wide = Linear(as_dataset((X, y)), "logistic", l2=L2["logistic"])
    assert wide.data.epoch(0, 0)[0].rows.indices.dtype == np.uint64
    how = Cosine(step("logistic", "adagrad")), STRATEGIES[strategy](2)
    assert_reached(minimise(wide, "adagrad", *how, budget=EPOCHS), "logistic")


@pytest.mark.parametrize("strategy", SHARED)
@pytest.mark.parametrize("rule", COORDINATE_RULES if references.ALL else ["sgd", "ftrl"])
def test_one_worker_of_any_strategy_is_serial_bit_for_bit(rule, strategy):
    runs = [
        minimise(problem("logistic"), rule, Constant(0.05), kind, budget=2)
        for kind in (Serial(), STRATEGIES[strategy](workers=1))
    ]
    assert runs[0].model.weights.tobytes() == runs[1].model.weights.tobytes()
    assert runs[0].model.intercept.tobytes() == runs[1].model.intercept.tobytes()
    assert runs[0].objective == runs[1].objective


@pytest.mark.parametrize("kind", [Serial(), *(STRATEGIES[name](n) for name in SHARED for n in (1, 2))], ids=repr)
def test_averaged_iterates_of_a_constant_step_come_closer_than_the_last_one(kind):
    budget = EPOCHS // 3 if kind == RoundRobin(2) else EPOCHS
    last, averaged = (
        minimise(problem("logistic"), "sgd", Constant(0.5), kind, budget=budget, average=share) for share in (0.0, 0.5)
    )
    assert_reached(averaged, "logistic")
    assert averaged.objective < last.objective


def test_averaging_is_over_the_share_asked_for():
    """All of the budget: the mean of what the ends of all chunks would be."""
    chunks = len(problem("logistic").data.epoch(0, 0))
    seen = [minimise(problem("logistic"), "sgd", Constant(0.5), Serial(), budget=n).model.weights for n in (1, 2)]
    half = minimise(problem("logistic"), "sgd", Constant(0.5), Serial(), budget=2, average=0.5)
    whole = minimise(problem("logistic"), "sgd", Constant(0.5), Serial(), budget=2, average=1.0)
    assert chunks > 1
    assert not np.array_equal(half.model.weights, seen[1])
    # The mean of the second epoch lies nearer its end than the mean of both epochs does.
    assert np.linalg.norm(half.model.weights - seen[1]) < np.linalg.norm(whole.model.weights - seen[1])


def test_workers_share_the_work():
    """What one worker adds, the others see: with one epoch, two workers are as far as one, not half as far."""
    start = np.log(2)
    serial, shared = (
        minimise(problem("logistic"), "adagrad", Constant(0.1), kind, budget=1) for kind in (Serial(), Hogwild(2))
    )
    assert start - shared.loss > 0.9 * (start - serial.loss) > 0


def test_workers_that_find_no_chunk_do_not_hold_the_average_back():
    few = 300  # rows: one chunk, so that seven of eight workers have nothing to do
    X, y = data("logistic")
    small = Linear(as_dataset((X[:few], y[:few])), "logistic", l2=1e-2)
    alone, with_idle = (
        minimise(small, "adagrad", Constant(0.1), kind, budget=2) for kind in (Serial(), STRATEGIES["averaging"](8))
    )
    assert alone.model.weights.tobytes() == with_idle.model.weights.tobytes()
    assert alone.model.intercept.tobytes() == with_idle.model.intercept.tobytes()


@pytest.mark.parametrize("rule", ["sgd", "adagrad"])
@pytest.mark.parametrize("workers", [2, 8, 32])
def test_a_far_intercept_is_reached_by_any_number_of_workers(rule, workers):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5_000, 8))
    y = X @ rng.normal(size=8) + 50 + rng.normal(size=5_000)
    run = minimise(Linear((X, y), "squared"), rule, strategy=Hogwild(workers), budget=20)
    assert run.model.intercept[0] == pytest.approx(50, abs=0.2)
    assert run.objective < 0.55
