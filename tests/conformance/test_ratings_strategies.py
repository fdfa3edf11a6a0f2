"""Every strategy in one memory, and every rule, on ratings and on preferences: the same objective as serial."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import references
from hogwild import Local, MatrixCompletion, ParameterServer, minimise
from hogwild.data.generate.ratings import GeneratedRatings
from hogwild.strategies import STRATEGIES, named

SHARED = [name for name, kind in STRATEGIES.items() if kind.shares_memory and name != "serial"]
EPOCHS = 40


@cache
def problem(loss):
    made = GeneratedRatings(users=400, items=250, n_rows=20_000, rank=3, noise=0.5, seed=4)
    return MatrixCompletion(made.columns, rank=4, l2=0.1, loss=loss)


@cache
def serial(loss, epochs=EPOCHS):
    return minimise(problem(loss), strategy="serial", budget=epochs)


CASES = [(loss, name) for loss in ("squared", "bpr") for name in SHARED if references.ALL or name == "hogwild"]


@pytest.mark.parametrize(("loss", "strategy"), CASES)
def test_every_strategy_comes_as_far_as_serial(strategy, loss):
    # Workers that take turns come as far as one in any number of epochs, and wait for the clock's ticks on busy cores.
    epochs, workers = EPOCHS // 10 if strategy == "round-robin" else EPOCHS, 2
    expected = serial(loss, epochs).objective
    # Replicas that are averaged come as far in an epoch as one worker does in its share of it.
    longer = workers if strategy == "averaging" else 1
    run = minimise(problem(loss), strategy=named(strategy, workers), budget=epochs * longer)
    assert run.config["workers"] == workers
    assert run.objective == pytest.approx(expected, rel=0.01)
    assert run.objective < 0.95 * start(loss)  # which is not where it began


@cache
def start(loss):
    from hogwild.rules import SGD

    state, walk = problem(loss).start(SGD()), problem(loss).data.in_order()
    sums = np.sum([problem(loss).measure(walk[k], state) for k in range(len(walk))], axis=0)
    return problem(loss).metrics(sums)["loss"] + problem(loss).penalty(state)


@pytest.mark.parametrize(("rule", "step"), [("adagrad", 0.1), ("adam", 0.01), ("ftrl", 0.1), ("momentum", 0.003)])
def test_other_rules_come_as_far(rule, step):
    from hogwild import Cosine

    run = minimise(problem("squared"), rule, Cosine(step), "serial", budget=EPOCHS)
    assert run.objective == pytest.approx(serial("squared").objective, rel=0.03)


def test_workers_that_talk_come_as_far():
    server = ParameterServer(workers=2, push_every=200, pull_every=200)
    run = minimise(problem("squared"), strategy=server, runtime=Local(), budget=EPOCHS)
    assert run.objective == pytest.approx(serial("squared").objective, rel=0.02)


def test_block_by_block_it_comes_as_far(monkeypatch):
    from hogwild.problems import matrix_completion

    whole, expected = problem("squared"), serial("squared").objective
    monkeypatch.setattr(matrix_completion, "CACHED", 2**13)
    blocked = MatrixCompletion(whole.ratings, rank=4, l2=0.1)
    assert blocked.data.shuffled
    assert not whole.data.shuffled
    run = minimise(blocked, strategy=named("hogwild", 2), budget=EPOCHS)
    assert run.objective == pytest.approx(expected, rel=0.01)
