"""Delays, running ahead and prescribed staleness on a cluster of two nodes, here on one machine."""

from __future__ import annotations

import os

import pytest
from clusters import assert_nothing_is_left, cluster_of
from talkers import train

from hogwild import Link, ParameterServer, Ray
from hogwild.delays import DelayStream
from hogwild.errors import ParameterError

pytest.importorskip("ray", reason="pip install 'hogwild[ray]'")
pytestmark = pytest.mark.skipif("HOGWILD_CLUSTER" not in os.environ, reason="make cluster")

ROWS = 120
PATIENT = {"cpus_per_worker": 0.5, "startup_timeout": 240.0}  # a busy machine takes its time to start processes
SEED = 3


@pytest.fixture(scope="module", autouse=True)
def cluster():
    with cluster_of(2) as cluster:
        yield cluster
        assert_nothing_is_left(cluster)


def trained(strategy, budget=2, **options):
    run = train(strategy, Ray(**PATIENT, **options), budget=budget, schedule=0.05, seed=SEED)
    assert run.stop_reason == "epochs"
    assert the(run, "idle")["crashes"] == 0
    return run


def the(run, kind):
    (event,) = (event for event in run.events if event["event"] == kind)
    return event


def staleness(run):
    return {int(age): count for age, count in the(run, "staleness")["histogram"].items()}


def updates(run):
    """How many deltas of each worker were added; every update is one of them."""
    return {name: figures["count"] for name, figures in the(run, "staleness")["workers"].items()}


def test_a_delayed_worker_holds_its_update_and_nobody_waits_for_it():
    """The other worker makes all updates meanwhile. When the run ends the delay does, and the update is that stale."""
    run = trained(ParameterServer(2, push_every=1), delay={0: 0.005, 1: 3000.0})
    assert updates(run) == {"worker-0": 2 * ROWS, "worker-1": 1}
    assert the(run, "staleness")["workers"]["worker-1"]["most"] > ROWS
    assert run.seconds < 3000


@pytest.mark.parametrize("delay", ["exponential:0.003", {0: 0.002, 1: "normal:0.005:0.002"}], ids=["drawn", "mixed"])
def test_every_update_takes_its_delay_at_least(delay):
    run = trained(ParameterServer(2, push_every=1), delay=delay)
    busy = the(run, "idle")["workers"]
    for number in range(2):
        name = f"worker-{number}"
        # The end of the run cuts the last delay of a worker short.
        least = DelayStream(delay, SEED, number).total(updates(run)[name] - 1)
        assert least > 0
        assert busy[name]["busy"] >= least
    assert sum(updates(run).values()) >= 2 * ROWS


def test_a_worker_that_runs_ahead_pulls_less_often_and_pushes_what_is_stale():
    """A round trip takes 0.04 s, in which a worker makes more than a few updates of one row."""
    strategies = (ParameterServer(2, push_every=1, run_ahead=most) for most in (0, 20))
    waiting, ahead = (trained(strategy, link=Link(latency=0.02)) for strategy in strategies)

    def pulls(run):
        return the(run, "traffic")["kinds"]["Pull"]["messages"]

    # Without running ahead there is a pull for each update; with it, at least one for 21.
    assert pulls(waiting) >= sum(updates(waiting).values())
    assert sum(updates(ahead).values()) / 21 <= pulls(ahead) < sum(updates(ahead).values()) / 2
    assert the(ahead, "staleness")["mean"] > the(waiting, "staleness")["mean"]


def test_a_fixed_staleness_is_exact():
    found = staleness(trained(ParameterServer(2, staleness="fixed:20"), delay="exponential:0.001"))
    assert found == {**dict.fromkeys(range(20), 1), 20: sum(found.values()) - 20}
    assert sum(found.values()) >= 2 * ROWS


def test_a_delay_of_a_worker_that_is_not_there_is_refused():
    with pytest.raises(ParameterError, match="There are workers 0 to 1; 2 is none of them"):
        trained(ParameterServer(2, push_every=1), delay={2: 0.1})
