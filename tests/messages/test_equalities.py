"""Strategies that must come to the same parameters."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from talkers import NOT_SERIAL, TALKERS, problem, train

import hogwild
from hogwild import AllToAll, Averaging, Gossip, LocalSGD, ParameterServer, Simulator, Synchronous, minimise

RULES = {"sgd": hogwild.Cosine(0.2), "adagrad": hogwild.Constant(0.5)}
IN_STEP = {
    "a server in step": ParameterServer(4, staleness=0),
    "two servers in step": ParameterServer(4, staleness=0, shards=2),
    "local steps of one": LocalSGD(4, period=1),
    "gossip in a clique": Gossip("clique", workers=4),
    "all to all": AllToAll(4),
}


def parameters(run):
    return np.concatenate([run.model.weights.ravel(), run.model.intercept])


@cache
def synchronous(rule):
    return parameters(train(Synchronous(4), Simulator(), budget=3, rule=rule, schedule=RULES[rule]))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("strategy", IN_STEP.values(), ids=IN_STEP)
def test_those_who_go_in_step_take_the_same_steps(strategy, rule):
    found = parameters(train(strategy, Simulator("exponential:0.01"), budget=3, rule=rule, schedule=RULES[rule]))
    assert np.abs(synchronous(rule)).max() > 0.1
    np.testing.assert_allclose(found, synchronous(rule), rtol=0, atol=1e-6)


def test_synchronous_is_the_mean_of_the_gradients():
    X, y = problem("squared").source.rows.values.reshape(-1, 4), problem("squared").source.labels()
    run = train(Synchronous(120), Simulator(), "squared", budget=1, schedule=hogwild.Constant(0.5))
    gradient = -(X.T @ y) / len(y)
    np.testing.assert_allclose(run.model.weights.ravel(), -0.5 * gradient / (1 + 0.5 * 0.01), rtol=1e-4)


@cache
def serial(rule):
    return parameters(minimise(problem(), rule=rule, schedule=RULES[rule], strategy="serial", budget=3))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", sorted(set(TALKERS) - NOT_SERIAL))
def test_one_worker_of_anything_is_serial(name, rule):
    strategy = replace(TALKERS[name], workers=1)
    found = parameters(train(strategy, Simulator(), budget=3, rule=rule, schedule=RULES[rule]))
    np.testing.assert_allclose(found, serial(rule), rtol=0, atol=2e-6)


def test_averaging_meets_once():
    run = train(Averaging(3), Simulator(), budget=2)
    pushes = next(event for event in run.events if event["event"] == "traffic")["kinds"]["Push"]
    assert pushes["messages"] == 3
