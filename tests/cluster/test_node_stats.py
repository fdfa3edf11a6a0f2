"""How everybody stands, from signs of life; and the metrics made of it."""

from __future__ import annotations

import io
from collections import Counter

import pytest

pytest.importorskip("ray", reason="pip install 'hogwild[ray]'")

from hogwild.callbacks import Progress
from hogwild.messaging.job import Traffic
from hogwild.runtimes.ray import node_stats
from hogwild.runtimes.ray.actor import ActorLocation, Heartbeat
from hogwild.runtimes.ray.node_stats import ClusterStats
from hogwild.runtimes.ray.placement import ActorRecord

HERE = ActorLocation("node-a", "machine", 7, "")


def record(name, incarnation=0, **more):
    return ActorRecord(name, incarnation, None, location=HERE, since=100.0, **more)


def heartbeat(updates=0, pushes=0, size=0, **more):
    return Heartbeat(updates=updates, bursts=updates // 4, traffic={"Push": Traffic(pushes, size)}, ready=True, **more)


def received(stats, each, at, sign):
    each.last_answer, each.heartbeat = at, sign
    return stats.add_heartbeat(each)


def test_rates_are_those_between_two_signs_of_life():
    stats, worker = ClusterStats(), record("worker-0")
    received(stats, worker, 101.0, heartbeat(40, 10, 1000))
    received(stats, worker, 103.0, heartbeat(100, 30, 5000))
    (row,) = stats.rows(["worker-0"], {"worker-0": worker}, {}, 103.5, 3.0)
    assert (row["updates_rate"], row["pushes_rate"], row["bytes_rate"]) == (30.0, 10.0, 2000.0)
    assert (row["state"], row["bursts"], row["ray_node"], row["silent"]) == ("working", 25, "node-a", 0.5)


def test_staleness_is_that_of_a_workers_changes_whoever_noticed_it():
    stats, server = ClusterStats(), record("server-0")
    received(stats, server, 101.0, heartbeat(delays={"worker-0": {0: 5}}))
    since = received(stats, server, 102.0, heartbeat(delays={"worker-0": {0: 5, 4: 3}, "worker-1": {1: 2}}))
    assert since.delays == {"worker-0": Counter({4: 3}), "worker-1": Counter({1: 2})}
    rows = stats.rows(["worker-0", "worker-1"], {}, {"worker-1": 2}, 102.0, 3.0)
    assert [(row["staleness"], row["state"], row["restarts"]) for row in rows] == [(4.0, "gone", 0), (1.0, "gone", 2)]


def test_a_server_that_comes_back_counts_nothing_twice_and_a_worker_begins_anew():
    stats = ClusterStats()
    for name in ("server-0", "worker-0"):
        received(stats, record(name), 101.0, heartbeat(50, delays={"worker-0": {1: 10}}))
        since = received(stats, record(name, incarnation=1), 102.0, heartbeat(8, delays={"worker-0": {1: 12}}))
        assert since.updates == 8
        assert since.delays["worker-0"].total() == (2 if name == "server-0" else 12)


def test_who_says_nothing_is_silent_and_who_has_no_process_is_starting():
    stats, worker = ClusterStats(), record("worker-0", last_answer=100.0)
    late = ActorRecord("worker-1", 0, None)
    rows = stats.rows(["worker-0", "worker-1"], {"worker-0": worker, "worker-1": late}, {}, 102.0, 3.0)
    assert [row["state"] for row in rows] == ["silent", "starting"]


class Recorded:
    """In the place of a metric of Ray's."""

    def __init__(self, name, description, *more):
        self.name, self.tag_keys, self.values = name, more[-1], []

    def inc(self, value, tags):
        assert value > 0
        assert set(tags) == set(self.tag_keys)
        self.values.append((tags["node"], value))

    observe = inc


def test_metrics_are_recorded_with_their_tags(monkeypatch):
    import ray.util.metrics

    made = []
    for name in ("Counter", "Histogram"):
        monkeypatch.setattr(ray.util.metrics, name, lambda *words: made.append(Recorded(*words)) or made[-1])
    stats, worker, numbers = ClusterStats(), record("worker-0"), node_stats.Metrics("run-1")
    numbers.record("worker-0", received(stats, worker, 101.0, heartbeat(12, 3, 900, delays={"worker-0": {2: 3}})))
    numbers.record("worker-0", received(stats, worker, 102.0, heartbeat(12, 3, 900, delays={"worker-0": {2: 3}})))
    numbers.restarted("worker-0")
    assert {each.name: each.values for each in made} == {
        "hogwild_updates": [("worker-0", 12)],
        "hogwild_bursts": [("worker-0", 3)],
        "hogwild_pushes": [("worker-0", 3)],
        "hogwild_bytes": [("worker-0", 900)],
        "hogwild_restarts": [("worker-0", 1)],
        "hogwild_staleness": [("worker-0", 2)] * 3,
    }


def shown(terminal, monkeypatch):
    from rich.console import Console

    screen = Console(file=io.StringIO(), force_terminal=terminal, width=120, color_system=None)
    monkeypatch.setattr("hogwild.callbacks.progress.LINES", 0.0)
    bar = Progress(screen)
    stats, worker = ClusterStats(), record("worker-0")
    received(stats, worker, 102.0, heartbeat(1600, 8, 1000))
    rows = stats.rows(["worker-0", "worker-1"], {"worker-0": worker}, {"worker-1": 3}, 102.0, 3.0)
    bar({"event": "cluster", "nodes": rows})
    bar.close()
    return screen.file.getvalue()


def test_a_terminal_shows_a_table_and_anything_else_plain_lines(monkeypatch):
    table = shown(True, monkeypatch)
    assert "ray node" in table
    assert "Starting processes" in table
    assert "worker-0 on" not in table
    assert shown(False, monkeypatch) == (
        "worker-0 on node-a: working, bursts 400, updates/s 800, pushes/s 4.0, bytes/s 500 B, last message 0.0 s ago\n"
        "worker-1: gone, restarts 3\n"
    )
