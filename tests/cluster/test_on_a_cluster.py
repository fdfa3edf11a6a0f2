"""Participants on a cluster of several nodes, here on one machine: they come to the same as elsewhere.

What happens when they die is in ``tests/chaos/test_ray.py``.
"""

from __future__ import annotations

import os

import ledgers
import numpy as np
import pytest
from clusters import Fate, assert_nothing_is_left, cluster_of
from talkers import train

from hogwild import ParameterServer, Ray
from hogwild.errors import WorkerError
from hogwild.messaging.job import MessageJob
from hogwild.training import message_launch

pytest.importorskip("ray", reason="pip install 'hogwild[ray]'")
pytestmark = pytest.mark.skipif("HOGWILD_CLUSTER" not in os.environ, reason="make cluster; make test has tests/chaos")


@pytest.fixture(scope="module", autouse=True)
def cluster():
    with cluster_of(2) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def nothing_left(cluster):
    yield
    assert_nothing_is_left(cluster)


def test_who_comes_late_takes_part(tmp_path):
    strategy, fate = ParameterServer(2), Fate()
    runtime = Ray(join_times={1: 0.3})
    job = ledgers.job(strategy, 250, 0.02, tmp_path, fate, late=runtime.join_times)
    outcome = runtime.play(job)
    ledgers.check(outcome, tmp_path, strategy, 250, fate.events)
    joined = [event["node"] for event in fate.of("joined")]
    assert joined == ["worker-1"]
    assert outcome.counts["worker-1"]["terms"] > 0


def test_what_fails_in_a_worker_is_told(tmp_path):
    job = ledgers.job(ParameterServer(1), 10, 0.0, tmp_path / "nowhere", lambda event, **more: None)
    with pytest.raises(WorkerError, match="worker-0 failed: FileNotFoundError"):
        Ray().play(job)


def test_a_cluster_without_room_is_told(tmp_path):
    job = ledgers.job(ParameterServer(1), 10, 0.0, tmp_path, lambda event, **more: None)
    with pytest.raises(WorkerError, match=r"worker-0.* for 2 s: the cluster has 2 nodes with 8 CPUs.* takes 100"):
        Ray(cpus_per_worker=100, startup_timeout=2.0).play(job)


def test_ctrl_c_ends_it_with_what_it_has(monkeypatch):
    begun = []

    def job(*parts):
        return MessageJob(*parts[:6], lambda: len(begun) > 3, *parts[7:])

    monkeypatch.setattr(message_launch, "MessageJob", job)

    def listen(event):
        begun.extend([event] * (event["event"] == "progress"))

    run = train(ParameterServer(2), Ray(), budget=10_000, callbacks=[listen])
    assert run.stop_reason == "interrupted"
    assert np.isfinite(run.model.weights).all()
