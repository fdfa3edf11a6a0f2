"""Participants on a cluster of several nodes, here on one machine: they come to the same as elsewhere.

What happens when they die is in ``tests/chaos/test_ray.py``.
"""

from __future__ import annotations

import os

import ledgers
import numpy as np
import pytest
from clusters import Fate, assert_nothing_is_left, cluster_of
from talkers import TALKERS, optimum, train

from hogwild import Cosine, Gossip, LocalSGD, Module, ParameterServer, Ray, Simulator, minimise
from hogwild.errors import WorkerError
from hogwild.messages.company import Company
from hogwild.training import talking

pytest.importorskip("ray", reason="pip install 'hogwild[ray]'")

ALL = "HOGWILD_CONFORMANCE" in os.environ
SMALL = {
    "parameter server": ParameterServer(2, shards=2, push_every=4),
    "gossip": Gossip("ring", workers=2, period=4),
}


@pytest.fixture(scope="module", autouse=True)
def cluster():
    with cluster_of(2) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def nothing_left(cluster):
    yield
    assert_nothing_is_left(cluster)


@pytest.mark.parametrize("strategy", TALKERS.values() if ALL else SMALL.values(), ids=TALKERS if ALL else SMALL)
def test_comes_to_the_optimum(strategy):
    run = train(strategy, Ray(), budget=25 if ALL else 12)
    assert run.stopped == "epochs"
    assert run.objective <= 1.01 * optimum("logistic")
    assert run.result["messages"] > 0
    assert len({event["node"] for event in run.events if event["event"] == "placed"}) == 2
    waiting = next(event for event in run.events if event["event"] == "waiting")
    assert (waiting["crashes"], waiting["malformed"]) == (0, 0)


def test_a_model_is_trained_too():
    torch = pytest.importorskip("torch", reason="pip install 'hogwild[torch]'")
    random = torch.Generator().manual_seed(1)
    X = torch.randn(96, 3, generator=random)
    y = X @ torch.tensor([[1.0], [-2.0], [0.5]]) + 1.0
    problem = Module(torch.nn.Linear(3, 1), torch.nn.functional.mse_loss, torch.utils.data.TensorDataset(X, y), batch=8)
    run = minimise(problem, torch.optim.SGD, Cosine(0.1), LocalSGD(2, period=4), Ray(), 12)
    assert run.objective < 1e-3
    assert run.model.net is problem.net


def test_in_step_it_is_what_the_simulator_comes_to():
    strategy = ParameterServer(2, staleness=0, push_every=8)
    here, there = (train(strategy, runtime, budget=2) for runtime in (Ray(), Simulator()))
    np.testing.assert_allclose(here.model.weights, there.model.weights, rtol=1e-6, atol=1e-6)


def test_who_comes_late_takes_part(tmp_path):
    strategy, fate = ParameterServer(2), Fate()
    runtime = Ray(late={1: 0.3})
    company = ledgers.company(strategy, 250, 0.02, tmp_path, fate, late=runtime.late)
    outcome = runtime.play(company)
    ledgers.check(outcome, tmp_path, strategy, 250, fate.events)
    joined = [event["participant"] for event in fate.of("joined")]
    assert joined == ["worker-1"]
    assert outcome.counts["worker-1"]["terms"] > 0


def test_what_fails_in_a_worker_is_told(tmp_path):
    company = ledgers.company(ParameterServer(1), 10, 0.0, tmp_path / "nowhere", lambda event, **more: None)
    with pytest.raises(WorkerError, match="worker-0 failed: FileNotFoundError"):
        Ray().play(company)


def test_a_cluster_without_room_is_told(tmp_path):
    company = ledgers.company(ParameterServer(1), 10, 0.0, tmp_path, lambda event, **more: None)
    with pytest.raises(WorkerError, match=r"worker-0.* for 2 s: the cluster has 2 nodes with 8 CPUs.* takes 100"):
        Ray(cpus=100, startup=2.0).play(company)


def test_ctrl_c_ends_it_with_what_it_has(monkeypatch):
    begun = []

    def company(*parts):
        return Company(*parts[:6], lambda: len(begun) > 3, *parts[7:])

    monkeypatch.setattr(talking, "Company", company)

    def listen(event):
        begun.extend([event] * (event["event"] == "progress"))

    run = train(ParameterServer(2), Ray(), budget=10_000, callbacks=[listen])
    assert run.stopped == "interrupted"
    assert np.isfinite(run.model.weights).all()
