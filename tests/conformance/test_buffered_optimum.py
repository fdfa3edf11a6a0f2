"""Buffers do not change where a run converges to."""

import numpy as np
import pytest

import references
from hogwild import Cosine, Hogwild, Linear, Serial, minimise
from hogwild.data import InMemoryDataset
from hogwild.data.generate import kind

KINDS = {
    "rcv1": {"rows": 4_000, "features": 300, "nonzeros": 20},
    "clicks": {"rows": 4_000, "features": 500, "nonzeros": 10},
    "dense": {"rows": 4_000, "features": 30},
}


STEPS = {"sgd": 0.5, "adagrad": 0.1}
CASES = [
    (name, rule)
    for name in KINDS
    for rule in STEPS
    if references.ALL or (name, rule) != ("clicks", "sgd")  # ones alone have a loop of their own: compiled for one rule
]


@pytest.mark.parametrize(("name", "rule"), CASES)
def test_the_objective_is_that_of_serial_within_a_thousandth(name, rule):
    data = InMemoryDataset(kind(name, **KINDS[name]).rows, shuffled=True)
    problem = Linear(data, "logistic", l2=1e-2)
    for seed in range(2):
        alone, together = (
            minimise(problem, rule, Cosine(STEPS[rule]), strategy, budget=40, seed=seed).objective
            for strategy in (Serial(), Hogwild(3, buffer=32))
        )
        assert together == pytest.approx(alone, rel=1e-3)
        assert alone < 0.999 * np.log(2)  # something was learnt
