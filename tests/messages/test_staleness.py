"""Staleness of a parameter server: network delay becomes staleness, and staleness can be prescribed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from talkers import train

from hogwild import Local, ParameterServer, Run, Simulator
from hogwild.delays import named
from hogwild.errors import ParameterError
from hogwild.messaging.deltas import frozen
from hogwild.messaging.job import RunConfig
from hogwild.runtimes.messaging.injected_faults import Crash, Link
from hogwild.strategies.roles.controlled_staleness import MOST_BYTES, ControlledStaleness

UPDATE = 0.001  # Seconds of one simulated update.


def staleness(run: Run) -> dict:
    (event,) = [event for event in run.events if event["event"] == "staleness"]
    return {int(age): count for age, count in event["histogram"].items()}


def mean_staleness(run: Run) -> float:
    found = staleness(run)
    return sum(age * count for age, count in found.items()) / sum(found.values())


def with_latency(latency: float, **options) -> Run:
    runtime = Simulator(UPDATE, link=Link(latency=latency))
    return train(ParameterServer(4, **options), runtime, budget=4, schedule=0.05)


def test_latency_becomes_staleness_and_takes_no_time():
    slow, slower = with_latency(0.005), with_latency(0.02)
    round_trips = 2 * 0.005 / UPDATE, 2 * 0.02 / UPDATE
    # Each of the three others pushes about once an update, during a round trip and the pull before it.
    assert 2 * round_trips[0] < mean_staleness(slow) < 5 * round_trips[0]
    assert mean_staleness(slower) > 2 * mean_staleness(slow)
    assert slower.seconds < 2 * slow.seconds


def test_who_waits_for_parameters_pays_with_time_instead():
    slow, slower = with_latency(0.005, run_ahead=0), with_latency(0.02, run_ahead=0)
    assert mean_staleness(slow) == pytest.approx(mean_staleness(slower), abs=0.5)
    assert slower.seconds > 3 * slow.seconds


def test_a_worker_runs_ahead_no_further_than_allowed():
    ages = [mean_staleness(with_latency(0.02, run_ahead=most)) for most in (0, 2, 8)]
    assert all(fewer < more for fewer, more in pairwise(ages))
    assert max(staleness(with_latency(0.02, run_ahead=2))) <= 3 * (2 + 2 * 2)


def test_a_worker_alone_reads_its_own_deltas_before_the_server_has_them():
    behind = train(ParameterServer(1), Simulator(UPDATE, link=Link(latency=0.02)), budget=3, schedule=0.05)
    alone = train(ParameterServer(1, run_ahead=0), Simulator(UPDATE), budget=3, schedule=0.05)
    np.testing.assert_allclose(behind.model.weights, alone.model.weights, atol=2e-5)
    assert staleness(behind) == {0: sum(staleness(behind).values())}


def test_a_server_that_crashes_while_pulls_are_on_their_way_adds_every_delta_once():
    crash = Crash("server-0", 0.05, 0.02)
    runtime = Simulator(UPDATE, link=Link(latency=0.01), faults=(crash,), detection_delay=0.01)
    run = train(ParameterServer(1), runtime, budget=3, schedule=0.05)
    alone = train(ParameterServer(1, run_ahead=0), Simulator(UPDATE), budget=3, schedule=0.05)
    np.testing.assert_allclose(run.model.weights, alone.model.weights, atol=2e-5)


@pytest.mark.parametrize("runtime", [Simulator("exponential:0.001"), Local()], ids=["simulator", "local"])
def test_a_fixed_staleness_is_exact(runtime):
    run = train(ParameterServer(3, staleness="fixed:7"), runtime, budget=3, schedule=0.05)
    found = staleness(run)
    assert [found[age] for age in range(7)] == [1] * 7
    assert set(found) == set(range(8))
    assert found[7] == sum(found.values()) - 7


def test_a_fixed_staleness_of_one_worker_is_delayed_gradient_descent():
    """The server's parameters follow w(k + 1) = w(k) + delta(w(k - 2)), whoever computes the deltas."""
    runs = [train(ParameterServer(n, staleness="fixed:2"), Simulator(), budget=2, schedule=0.05) for n in (1, 3)]
    assert all(max(staleness(run)) == 2 for run in runs)
    assert runs[0].objective == pytest.approx(runs[1].objective, rel=0.05)


def test_drawn_staleness_follows_its_distribution_and_its_seed():
    runs = [
        train(ParameterServer(2, staleness="exponential:5"), Simulator(), budget=6, schedule=0.02, seed=seed)
        for seed in (0, 0, 1)
    ]
    assert staleness(runs[0]) == staleness(runs[1]) != staleness(runs[2])
    assert 4 < mean_staleness(runs[0]) < 6


def test_a_crashed_worker_gives_its_update_up():
    faults = (Crash("worker-1", 0.02),)
    runtime = Simulator(UPDATE, faults=faults, detection_delay=0.001)
    run = train(ParameterServer(3, staleness="fixed:4"), runtime, budget=3, schedule=0.05)
    assert run.stop_reason == "epochs"
    assert max(staleness(run)) == 4


def test_old_parameters_are_dropped():
    order = ControlledStaleness(named(3), np.zeros(1, np.float32))
    for number in range(50):
        order.reserve("worker-0")
        order.numbers.pop("worker-0")
        order.record(number + 1, np.zeros(1, np.float32))
    assert len(order.versions) <= 5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"staleness": -1}, "staleness"),
        ({"staleness": 1.5}, "staleness"),
        ({"staleness": "fixed:x"}, "staleness"),
        ({"staleness": "fixed:1.5"}, "whole number of pushes"),
        ({"staleness": "fixed:5", "shards": 2}, "shards"),
        ({"staleness": "fixed:5", "pull_every": 2}, "pull_every"),
        ({"staleness": 2, "run_ahead": 3}, "run_ahead"),
        ({"run_ahead": -1}, "run_ahead"),
    ],
)
def test_what_cannot_be_is_refused(options, words):
    with pytest.raises(ParameterError, match=words):
        ParameterServer(2, **options)


def test_more_old_parameters_than_fit_are_refused():
    config = RunConfig(2, frozen(np.zeros(MOST_BYTES // 16, np.float32)), 10, 10)
    with pytest.raises(ParameterError, match="copies"):
        ParameterServer(2, staleness="fixed:20").roles(config)["server-0"]()
