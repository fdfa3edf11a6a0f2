"""Every strategy by messages, on every runtime, comes to where its theory says."""

from __future__ import annotations

import pytest
from talkers import TALKERS, optimum, train

import references
from hogwild import Local, Simulator

RUNTIMES = {"simulator": Simulator(), "local": Local()}
EPOCHS = 20


@pytest.mark.parametrize("kind", ["logistic", "squared"] if references.ALL else ["logistic"])
@pytest.mark.parametrize("runtime", RUNTIMES.values(), ids=RUNTIMES)
@pytest.mark.parametrize("strategy", TALKERS.values(), ids=TALKERS)
def test_comes_to_the_optimum(strategy, runtime, kind):
    run = train(strategy, runtime, kind, budget=EPOCHS)
    assert run.stop_reason == "epochs"
    assert run.objective <= 1.01 * optimum(kind)
    assert run.history[-1]["updates"] >= EPOCHS * 120
    assert [event["event"] for event in run.events[-4:]] == ["staleness", "traffic", "idle", "result"]
    if "consensus" in run.result:
        assert run.result["consensus"] < 1e-3


@pytest.mark.parametrize("strategy", TALKERS.values(), ids=TALKERS)
def test_the_simulator_gives_the_same_run_twice(strategy):
    first, second = (train(strategy, Simulator(delay={1: 0.002}), budget=3, seed=4) for _ in range(2))
    other = train(strategy, Simulator(delay={1: 0.002}), budget=3, seed=5)
    assert first.events == second.events
    assert first.model.weights.tobytes() == second.model.weights.tobytes()
    assert first.events != other.events
