"""Budgets by messages: a run trains as many terms as it was asked for, however long its messages take."""

from __future__ import annotations

import pytest
from counting import Counter, count
from talkers import train

from hogwild import AllToAll, ElasticAveraging, Gossip, Local, ParameterServer, Simulator
from hogwild.delays import Slowed
from hogwild.runtimes.messaging.injected_faults import Crash, Link

GOAL = 1000
AHEAD = 1024  # Pushes while a pull is on its way, as in the simulator.
UPDATE = 0.001  # Seconds of one simulated update.

SHARING = {
    "parameter server": ParameterServer(4),
    "parameter server, two shards, seldom": ParameterServer(4, shards=2, push_every=2, pull_every=8),
    "parameter server, fixed staleness": ParameterServer(4, staleness="fixed:7"),
    "parameter server, alone": ParameterServer(1),
    "elastic averaging": ElasticAveraging(4, period=2),
    "all to all": AllToAll(4, synchronous=False),
    "gossip": Gossip("clique", synchronous=False, workers=4),
}
each_strategy = pytest.mark.parametrize("strategy", SHARING.values(), ids=list(SHARING))


def updates(strategy, compute=UPDATE, latency=0.0, run_ahead=AHEAD, late=(), **runtime):
    simulator = Simulator(compute, link=Link(latency=latency), **runtime)
    outcome, _ = count(strategy, simulator, GOAL, run_ahead=run_ahead, late=frozenset(late))
    assert outcome.reason == "epochs"
    return Counter.total


@each_strategy
@pytest.mark.parametrize("latency", [0.0, 0.1, 1.0])
def test_latency_adds_no_updates(strategy, latency):
    assert GOAL <= updates(strategy, latency=latency) <= 1.03 * GOAL


@each_strategy
def test_a_slow_worker_neither_adds_updates_nor_is_waited_for(strategy):
    assert GOAL <= updates(strategy, Slowed(UPDATE, {0: 10.0}), latency=0.01) <= 1.03 * GOAL


@pytest.mark.parametrize("run_ahead", [0, 1, AHEAD])
def test_a_worker_that_alone_remains_does_the_rest(run_ahead):
    faults = tuple(Crash(f"worker-{number}", 0.05) for number in (1, 2, 3))
    done = updates(ParameterServer(4), latency=0.001, run_ahead=run_ahead, faults=faults, detection_delay=0.01)
    assert GOAL <= done <= 1.1 * GOAL  # What a worker has trained and not reported before its crash is done again.


def test_a_server_that_crashes_adds_no_updates():
    faults = (Crash("server-0", 0.1, 0.05),)
    assert GOAL <= updates(ParameterServer(4), latency=0.01, faults=faults, detection_delay=0.01) <= 1.03 * GOAL


def test_a_worker_that_joins_shares_what_is_left():
    assert GOAL <= updates(ParameterServer(4), latency=0.01, late=(2,), join_times={2: 0.1}) <= 1.05 * GOAL


def test_a_server_that_crashes_with_drawn_staleness_takes_a_delta_whose_pull_comes_again():
    faults = (Crash("worker-1", 0.0502, 0.1), Crash("server-0", 0.1003, 0.1))
    strategy = ParameterServer(4, staleness="exponential:5")
    updates(strategy, latency=0.0001, faults=faults, detection_delay=0.01)


def test_threads_keep_to_the_budget():
    outcome, _ = count(ParameterServer(3), Local(), GOAL, run_ahead=1)
    assert outcome.reason == "epochs"
    # However threads take turns: all are told of fewer terms than the goal, then each trains its part of it at most.
    assert GOAL <= Counter.total < 2 * GOAL + 3


def test_a_run_with_a_high_latency_has_the_epochs_of_its_budget():
    run = train(ParameterServer(4), Simulator(UPDATE, link=Link(latency=1.0)), budget=4, schedule=0.05)
    assert run.history[-1]["epoch"] == 4
    assert 4 * 120 <= run.history[-1]["updates"] <= 1.05 * 4 * 120
