"""Factorisation machines: every strategy comes to the same optimum, and it is better than a linear model's."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import references
from hogwild import Cosine, FactorisationMachine, FieldAwareFactorisationMachine, Linear, Serial, minimise
from hogwild.data.generate import interactions
from hogwild.data.in_memory import InMemoryDataset
from hogwild.strategies import STRATEGIES

ROWS, HELD_OUT, FIELDS, EPOCHS = 16_000, 4_000, 6, 10
SHARED = [name for name, kind in STRATEGIES.items() if kind.shares_memory and name != "serial"]
PENALTIES = {"l2": 1e-4, "l2_factors": 1e-2}


@cache
def made():
    return interactions(ROWS + HELD_OUT, 120, fields=FIELDS, rank=3, seed=4)


@cache
def parts():
    rows = made().rows
    return InMemoryDataset(rows[:ROWS], shuffled=True), InMemoryDataset(rows[ROWS:], shuffled=True)


@cache
def problem(kind):
    if kind == "fm":
        return FactorisationMachine(parts()[0], rank=4, **PENALTIES)
    return FieldAwareFactorisationMachine(parts()[0], fields=made().fields, rank=4, **PENALTIES, normalise=False)


@cache
def serial(kind, rule):
    """The run of one worker with the step that trials chose."""
    return minimise(problem(kind), rule, Cosine(), Serial(), budget=EPOCHS, test=parts()[1])


def step(run):
    (chosen,) = (event["step"] for event in run.events if event["event"] == "step chosen")
    return chosen


CASES = [("fm", "adagrad", "hogwild"), ("ffm", "adagrad", "hogwild")]  # the others take long to compile
ALL = [(kind, rule, name) for kind in ("fm", "ffm") for rule in ("adagrad", "ftrl", "sgd") for name in SHARED]


def epochs(strategy):
    """Replicas that are averaged come as far in an epoch as one worker does in its share of it."""
    return 2 * EPOCHS if strategy == "averaging" else EPOCHS


@pytest.mark.parametrize(("kind", "rule", "strategy"), ALL if references.ALL else CASES)
def test_every_strategy_comes_to_the_optimum_of_one_worker(kind, rule, strategy):
    alone = serial(kind, rule)
    run = minimise(
        problem(kind), rule, Cosine(step(alone)), STRATEGIES[strategy](2), budget=epochs(strategy), test=parts()[1]
    )
    assert run.config["workers"] == 2
    assert run.objective == pytest.approx(alone.objective, rel=0.01)


def test_every_strategy_is_tried():
    assert {strategy for _, _, strategy in ALL} == set(SHARED) > {strategy for _, _, strategy in CASES}


@pytest.mark.parametrize(("kind", "share"), [("fm", 0.3), ("ffm", 0.5)])  # fields are more than was planted
def test_held_out_loss_is_far_below_that_of_a_linear_model(kind, share):
    linear = minimise(Linear(parts()[0], l2=1e-4), "adagrad", "cosine", Serial(), budget=EPOCHS, test=parts()[1])
    found = serial(kind, "adagrad").result["test_loss"]
    scores = made().scores(made().rows.indices.reshape(-1, FIELDS))[ROWS:] / made().noise
    planted = np.logaddexp(0, -scores * made().rows.labels[ROWS:]).mean()
    assert planted < found < linear.result["test_loss"] - 0.1
    assert found - planted < share * (linear.result["test_loss"] - planted)  # most of what there is to learn is learnt


@pytest.mark.parametrize("strategy", ["hogwild", "locked"])
def test_one_worker_of_a_strategy_is_serial_bit_for_bit(strategy):
    runs = [
        minimise(problem("fm"), "adagrad", Cosine(0.1), kind, budget=2) for kind in (Serial(), STRATEGIES[strategy](1))
    ]
    assert runs[0].model.factors.tobytes() == runs[1].model.factors.tobytes()
    assert runs[0].objective == runs[1].objective
