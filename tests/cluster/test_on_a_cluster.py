"""Participants on a cluster of several nodes, here on one machine: they come to the same as elsewhere, and may die."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import ledgers
import numpy as np
import psutil
import pytest
from talkers import TALKERS, optimum, train

from hogwild import Cosine, Gossip, LocalSGD, Module, ParameterServer, Ray, Simulator, minimise
from hogwild.errors import WorkerError
from hogwild.messages.company import Company
from hogwild.training import talking

ray = pytest.importorskip("ray", reason="pip install 'hogwild[ray]'")

ALL = "HOGWILD_CONFORMANCE" in os.environ
SMALL = {
    "parameter server": ParameterServer(2, shards=2, push_every=4),
    "gossip": Gossip("ring", workers=2, period=4),
}
NODE = {"num_cpus": 2, "object_store_memory": 100 << 20, "include_dashboard": False}


@pytest.fixture(scope="module", autouse=True)
def cluster():
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args=NODE)
    cluster.add_node(num_cpus=2, object_store_memory=100 << 20)
    ray.init(cluster.address, logging_level="error", log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(autouse=True)
def nothing_left(cluster):
    """No process of a run outlives it."""
    yield
    left = []
    for node in cluster.list_all_nodes():
        with suppress(psutil.Error):
            raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
            left += [each for each in raylet.children(recursive=True) if each.name().startswith("ray::Seat")]
    _, left = psutil.wait_procs(left, timeout=20)
    assert left == []


class Striker:
    """Sends a signal to a participant's process at the first event of a kind after so many."""

    def __init__(self, who, what, after=6, event="progress"):
        self.who, self.what, self.left, self.event = who, what, after, event
        self.process, self.struck, self.events = None, None, []

    def __call__(self, event, **more):
        self.events.append({"event": event, **more})
        if event == "placed" and more["participant"] == self.who and self.process is None:
            self.process = more["process"]
        self.left -= event == self.event
        if self.left == 0 and self.struck is None:
            self.struck = self.process
            os.kill(self.process, self.what)

    def of(self, kind):
        return [event for event in self.events if event["event"] == kind]


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


FAULTS = {
    "a worker is killed": ("worker-1", signal.SIGKILL, ParameterServer(2, shards=2)),
    "a server is killed": ("server-1", signal.SIGKILL, ParameterServer(2, shards=2)),
    "a worker stands still": ("worker-0", signal.SIGSTOP, ParameterServer(2, staleness=2, combine="sum")),
}  # fmt: skip


@pytest.mark.parametrize(("who", "what", "strategy"), FAULTS.values(), ids=FAULTS)
def test_it_goes_on_without_the_dead_and_no_push_is_lost_or_counts_twice(who, what, strategy, tmp_path):
    striker = Striker(who, what)
    outcome = Ray(heartbeat=2.0).play(ledgers.company(strategy, 120, 0.02, tmp_path, striker))
    assert striker.struck
    assert [(event["participant"], event["life"]) for event in striker.of("died")] == [(who, 0)]
    assert outcome.reason == "epochs"
    ledgers.check(outcome, tmp_path, strategy.workers, ledgers.processes_of_the_dead(striker.events))
    if not strategy.bounded:  # others do what the dead have not
        assert outcome.values.sum() / 2 + outcome.more["crashes"] >= 120
    assert not psutil.pid_exists(striker.struck)
    homes = [event["node"] for event in striker.of("placed") if event["participant"] == who]
    if what == signal.SIGSTOP:  # its node may be out of reach
        assert len(set(homes)) == len(homes)


def test_a_node_dies_with_all_that_is_on_it(cluster, tmp_path):
    """The run goes on where it can, and is not waited for until Ray notices it, which takes longer."""
    lost = cluster.add_node(num_cpus=2, object_store_memory=100 << 20)
    killed = []

    def strike(event, **more):
        striker(event, **more)
        if striker.left == 0 and not killed:
            raylet = psutil.Process(lost.all_processes["raylet"][0].process.pid)
            killed.extend(p["participant"] for p in striker.of("placed") if p["node"] == lost.node_id)
            for process in (raylet, *raylet.children(recursive=True)):
                process.kill()

    striker = Striker("", 0)
    striker.struck = 0
    strategy = ParameterServer(3, shards=3)
    outcome = Ray(heartbeat=2.0, cpus=0.5).play(ledgers.company(strategy, 150, 0.02, tmp_path, strike))
    assert killed
    assert {event["participant"] for event in striker.of("died")} >= set(killed)
    assert outcome.reason == "epochs"
    ledgers.check(outcome, tmp_path, 3, ledgers.processes_of_the_dead(striker.events))
    cluster.remove_node(lost, allow_graceful=False)


def test_when_the_coordinator_dies_the_same_call_goes_on_with_resume(tmp_path):
    strategy, runtime = ParameterServer(2, shards=2, push_every=4), Ray(slow={0: 0.02, 1: 0.02})
    striker = Striker("coordinator", signal.SIGKILL, after=3, event="checkpoint")
    with pytest.raises(WorkerError, match="coordinator has died"):
        train(strategy, runtime, budget=12, checkpoint=tmp_path, callbacks=[lambda event: striker(**event)])
    run = train(strategy, runtime, budget=12, checkpoint=tmp_path, resume=True)
    resumed = next(event for event in run.events if event["event"] == "resumed")
    assert resumed["epoch"] >= 2
    assert [record["epoch"] for record in run.history][-1] == 12
    assert run.objective <= 1.01 * optimum("logistic")


def test_what_fails_in_a_worker_is_told(tmp_path):
    company = ledgers.company(ParameterServer(1), 10, 0.0, tmp_path / "nowhere", lambda event, **more: None)
    with pytest.raises(WorkerError, match="worker-0 failed: FileNotFoundError"):
        Ray().play(company)


def test_a_cluster_without_room_is_told(tmp_path):
    company = ledgers.company(ParameterServer(1), 10, 0.0, tmp_path, lambda event, **more: None)
    with pytest.raises(WorkerError, match=r"worker-0 for 5 s: the cluster has 2 nodes with 4 CPUs.* takes 100"):
        Ray(cpus=100, startup=5.0).play(company)


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
