"""Gossip: means that are kept, neighbours that come and go."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from counting import Counter, count, trained
from talkers import optimum, train

from hogwild import Budget, Crash, Gossip, Link, Simulator, topologies
from hogwild.errors import ParameterError
from hogwild.messaging.compression import Half
from hogwild.messaging.deltas import frozen
from hogwild.messaging.job import RunConfig
from hogwild.messaging.messages import COORDINATOR, Begin, GossipPush, GossipReply, Stop, Stopped
from hogwild.messaging.protocol import Delivered, PeerLost, Send, Train, Trained
from hogwild.strategies.roles.adpsgd_worker import ADPSGDWorker
from hogwild.strategies.roles.exchanges import AverageExchange, MixingPlan

ROUGH = Link(loss=0.1, duplication=0.1, reordering=0.2)
DIRECTED = networkx.DiGraph([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])


def told(run, event):
    return [each for each in run.events if each["event"] == event]


class Circle:
    """Workers with different parameters, who mix them by hand."""

    def __init__(self, topology, count, compression=None):
        self.members, plan = tuple(range(count)), MixingPlan(topologies.named(topology))
        config = RunConfig(count, frozen(np.zeros(3, np.float32)), 1, 1)
        self.start = np.random.default_rng(0).standard_normal((count, 3)).astype(np.float32)
        self.workers = [AverageExchange(number, config, plan, compression) for number in self.members]
        for worker, values in zip(self.workers, self.start, strict=True):
            worker.begin(0, self.members, frozen(values))

    def mix(self, rounds):
        for clock in range(rounds):
            sent = [worker.message(clock) for worker in self.workers]
            for worker in self.workers:
                worker.mix(clock, {source: sent[source] for source in worker.sources(clock)})
        return np.array([worker.values for worker in self.workers])

    @property
    def mean(self):
        return np.broadcast_to(self.start.mean(0), self.start.shape)


def test_push_sum_gives_the_plain_mean_of_a_directed_graph():
    circle = Circle(DIRECTED, 4)
    np.testing.assert_allclose(circle.mix(60), circle.mean, atol=1e-5)
    assert max(abs(worker.weight - 1) for worker in circle.workers) > 0.1  # without weights it is another mean
    masses = np.array([worker.mass for worker in circle.workers])
    assert np.abs(masses - circle.mean).max() > 0.01


def test_what_is_learnt_counts_the_same_whatever_the_weight():
    circle = Circle(DIRECTED, 4)
    circle.mix(5)
    for worker in circle.workers:
        worker.trained(Trained(frozen(worker.values + np.float32(1)), 1, 1, 0.0, 0.0))
    np.testing.assert_allclose(circle.mix(60), circle.mean + 1, atol=1e-5)


def test_one_peer_exponential_agrees_after_log2_rounds():
    circle = Circle("one-peer-exponential", 8)
    assert np.abs(circle.mix(2) - circle.mean).max() > 0.01
    circle = Circle("one-peer-exponential", 8)
    np.testing.assert_allclose(circle.mix(3), circle.mean, atol=1e-6)


@pytest.mark.parametrize("topology", ["ring", "star", "exponential"])
def test_half_the_digits_keep_the_mean(topology):
    circle = Circle(topology, 6, Half())
    found = circle.mix(60)
    np.testing.assert_allclose(found.mean(0), circle.start.mean(0), atol=1e-6)
    assert 0 < np.abs(found - circle.mean).max() < 1e-3


@pytest.mark.parametrize("synchronous", [True, False])
@pytest.mark.parametrize("link", [Link(), ROUGH], ids=["smooth", "rough"])
def test_the_mean_of_all_is_the_mean_of_what_they_learnt(synchronous, link):
    strategy = Gossip("ring", synchronous, workers=5, period=2)
    outcome, _ = count(strategy, Simulator("exponential:0.001", link, {1: "exponential:0.003"}))
    assert outcome.reason == "epochs"
    assert trained(outcome) >= 120
    np.testing.assert_allclose(outcome.values, trained(outcome) / 5, rtol=1e-5)


def pairing(number, lost=()):
    """One of three workers, after its first burst, and what it has said."""
    worker = ADPSGDWorker(
        number, RunConfig(3, frozen(np.zeros(3, np.float32)), 10, 100), MixingPlan(topologies.named("star")), 1
    )
    for name in lost:
        list(worker.react(PeerLost(name)))
    began = Begin(((number, 0),), 0, 0, ("worker-0", "worker-1", "worker-2"))
    (train,) = worker.react(Delivered(COORDINATOR, began))
    return worker, list(worker.react(Counter().burst(train)))


def said(actions, kind):
    return [each for each in actions if isinstance(each, Send) and isinstance(each.body, kind)]


def test_who_was_lost_before_it_began_is_not_met():
    assert [each.to for each in said(pairing(1)[1], GossipPush)] == ["worker-0"]
    assert [each.to for each in said(pairing(1, lost=["worker-0"])[1], GossipPush)] == ["worker-2"]


@pytest.mark.parametrize(
    "end", [Delivered("worker-0", GossipReply(None, 1)), PeerLost("worker-0")], ids=["heard", "lost"]
)
def test_it_ends_when_nothing_is_on_its_way_any_more(end):
    worker, actions = pairing(1)
    (train,) = [each for each in actions if isinstance(each, Train)]
    list(worker.react(Delivered(COORDINATOR, Stop())))
    assert not said(worker.react(Counter().burst(train)), Stopped)
    (answer,) = said(worker.react(Delivered("worker-2", GossipPush(worker.values, 1, 0))), GossipReply)
    assert answer.body.vector is None  # the one who asks now has ended later, and must not wait either
    assert len(said(worker.react(end), Stopped)) == 1


def test_workers_that_wait_for_nobody_are_not_held_up():
    terms = {}
    for synchronous in (True, False):
        outcome, _ = count(Gossip("ring", synchronous, workers=4), Simulator(0.001, delay={0: 0.007}))
        terms[synchronous] = [outcome.counts[f"worker-{k}"]["terms"] for k in range(4)]
    assert terms[True] == [60] * 4
    assert 3 * terms[False][0] < terms[False][1]


@pytest.mark.parametrize("topology", ["star", "exponential", "random-regular:3", DIRECTED], ids=str)
def test_replicas_agree_in_the_end(topology):
    run = train(Gossip(topology, workers=4), Simulator(), "squared", budget=12)
    assert run.result["consensus"] < 1e-3
    assert run.objective <= 1.05 * optimum("squared")


def test_the_topology_is_told():
    run = train(Gossip("ring", workers=5), Simulator(faults=(Crash("worker-2", 0.05),), detection_delay=0.01), budget=2)
    first, second = told(run, "topology")
    assert (first["topology"], first["members"], first["neighbours"]) == ("Ring()", 5, {"least": 2, "most": 2})
    assert first["spectral_gap"] == pytest.approx(1 - (1 + 2 * np.cos(2 * np.pi / 5)) / 3)
    assert (second["view"], second["members"]) == (1, 4)
    assert second["spectral_gap"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("synchronous", [True, False])
def test_crash_and_return(synchronous):
    faults = (Crash("worker-2", 0.1, back_after=0.05), Crash("worker-0", 0.3), Crash("worker-3", 0.3))
    runtime = Simulator(link=ROUGH, faults=faults, detection_delay=0.01, join_times={1: 0.1})
    run = train(Gossip("ring", synchronous, workers=4), runtime, "squared", budget=12)
    assert run.stop_reason == "epochs"
    assert [event["node"] for event in told(run, "lost")] == ["worker-2", "worker-0", "worker-3"]
    assert run.objective <= 1.05 * optimum("squared")
    assert told(run, "topology")[-1]["members"] == 2


@pytest.mark.parametrize("period", [1, 7])
def test_all_is_trained_though_most_have_died(period):
    faults = (Crash("worker-0", 0.02), Crash("worker-2", 0.03))
    outcome, _ = count(Gossip("ring", workers=3, period=period), Simulator(0.001, faults=faults, detection_delay=0.01))
    assert abs(Counter.total - 240) <= 3 * period  # but for the last burst of each who died
    assert outcome.reason == "epochs"


def test_staleness_is_what_was_mixed_in_meanwhile():
    run = train(Gossip("ring", synchronous=False, workers=4), Simulator(), budget=2)
    assert told(run, "staleness")[0]["mean"] > 0.5
    run = train(Gossip("ring", workers=4), Simulator(), budget=2)
    assert told(run, "staleness")[0]["most"] == 0
    assert told(run, "staleness")[0]["count"] == 2 * 120


def test_stops_at_a_target_and_in_time():
    run = train(Gossip("torus", workers=4), Simulator(), budget=Budget(epochs=20, target=0.6))
    assert (run.stop_reason, run.history[-1]["epoch"] < 20) == ("target", True)
    run = train(Gossip("torus", False, workers=4), Simulator(), budget=Budget(seconds=0.5))
    assert run.stop_reason == "seconds"


@pytest.mark.parametrize(("options", "says"), [
    ({"topology": "hypercube", "workers": 6}, "2, 4, 8"), ({"topology": "rnig"}, "'ring'"),
    ({"compression": "top-k:0.1"}, "'half'"), ({"period": 0}, "period"), ({"workers": 0}, "workers"),
])  # fmt: skip
def test_what_cannot_work_is_refused(options, says):
    with pytest.raises(ParameterError, match=says):
        Gossip(**options)


def test_the_number_of_workers_is_checked_before_it_starts():
    with pytest.raises(ParameterError, match="4 nodes"):
        Gossip(DIRECTED).roles(RunConfig(3, frozen(np.zeros(1, np.float32)), 1, 1))


def test_the_last_iterates_are_averaged():
    outcome, _ = count(Gossip("ring", workers=2), Simulator(), average=0.5)
    np.testing.assert_allclose(outcome.values, np.mean(np.arange(61, 121)), rtol=1e-6)
