"""All to all: everybody has every change, once."""

from __future__ import annotations

import numpy as np
import pytest
from counting import Counter, count, trained
from talkers import optimum, train

from hogwild import AllToAll, Crash, Link, Simulator
from hogwild.errors import ParameterError
from hogwild.messaging.deltas import frozen
from hogwild.messaging.messages import ViewState
from hogwild.strategies.roles.membership import Membership

ROUGH = Link(loss=0.1, duplication=0.1, reordering=0.2)


@pytest.mark.parametrize("link", [Link(), ROUGH], ids=["smooth", "rough"])
@pytest.mark.parametrize("synchronous", [True, False])
@pytest.mark.parametrize("combine", ["mean", "sum"])
def test_every_change_is_added_once_everywhere(synchronous, combine, link):
    strategy = AllToAll(4, synchronous, period=2, combine=combine)
    outcome, events = count(strategy, Simulator("exponential:0.001", link, {1: "exponential:0.003"}))
    total = trained(outcome)
    assert total >= 120
    np.testing.assert_allclose(outcome.values, total / 4 if combine == "mean" else total, rtol=1e-5)
    assert [event for event in events if event["event"] == "epoch"][-1]["consensus"] < 1e-6


@pytest.mark.parametrize("workers", [2, 5])
def test_messages_grow_with_the_square_of_the_workers(workers):
    run = train(AllToAll(workers, period=4), Simulator(), budget=1)
    traffic = next(event for event in run.events if event["event"] == "traffic")
    rounds = -(-120 // workers) / 4
    assert traffic["kinds"]["GossipPush"]["messages"] == rounds * workers * (workers - 1)


def test_staleness_is_told_by_sender():
    outcome, _ = count(AllToAll(3, synchronous=False), Simulator(0.001, delay={2: 0.004}))
    delays = outcome.counts["worker-0"]["delays"]
    assert set(delays) == {"worker-0", "worker-1", "worker-2"}
    assert sum(sum(counts.values()) for counts in delays.values()) == trained(outcome)
    mean = {name: sum(k * v for k, v in counts.items()) / sum(counts.values()) for name, counts in delays.items()}
    assert mean["worker-2"] > 2 * mean["worker-0"]  # in one burst of the slow one, others make ten changes


@pytest.mark.parametrize("synchronous", [True, False])
def test_crash_and_return_leave_replicas_equal(synchronous):
    faults = (Crash("worker-2", 0.1, back_after=0.05), Crash("worker-0", 0.3))
    runtime = Simulator(link=ROUGH, faults=faults, detection_delay=0.01, join_times={1: 0.1})
    run = train(AllToAll(4, synchronous), runtime, "squared", budget=12, step=0.1)
    assert run.stop_reason == "epochs"
    assert run.result["consensus"] < 1e-6
    assert run.objective <= 1.05 * optimum("squared")


def test_those_who_live_do_what_the_dead_have_left():
    outcome, _ = count(AllToAll(3), Simulator(0.001, faults=(Crash("worker-1", 0.0305),), detection_delay=0.01))
    rounds = outcome.counts["worker-0"]["terms"]
    assert rounds > 100  # 80 of three would be all there is to do
    assert abs(Counter.total - 240) <= 3
    np.testing.assert_allclose(outcome.values, rounds, rtol=1e-6)  # the mean of changes of one each


def test_replicas_go_on_from_those_who_are_furthest():
    for replicas, expected in ((True, 6.0), (False, 4.0)):
        views = Membership(replicas=replicas)
        views.begin(("worker-0", "worker-1", "worker-2"))
        assert len(list(views.form(("worker-0", "worker-1")))) == 2
        at = [ViewState(1, clock, 10 * clock, frozen(np.full(1, value))) for clock, value in ((4, 2.0), (5, 6.0))]
        assert not views.receive("worker-0", at[0])
        assert not views.receive("worker-1", ViewState(0, 9, 9))  # of an earlier view
        assert views.receive("worker-1", at[1])
        assert views.agreed() == (5, 50, np.array([expected]))
    list(views.form(("worker-0",)))
    assert views.receive("worker-0", ViewState(2, 0, 0))
    assert views.agreed() is None


@pytest.mark.parametrize("options", [{"combine": "median"}, {"period": 0}, {"compression": "zip"}, {"workers": -1}])
def test_what_cannot_work_is_refused(options):
    with pytest.raises(ParameterError):
        AllToAll(**options)


@pytest.mark.parametrize("synchronous", [True, False])
def test_few_coordinates_at_a_time_reach_everybody_in_the_end(synchronous):
    strategy = AllToAll(3, synchronous, compression="top-k:0.4")
    run = train(strategy, Simulator(), "squared", budget=12, step=0.1)
    assert run.result["consensus"] < 1e-6
    assert run.objective <= 1.05 * optimum("squared")
