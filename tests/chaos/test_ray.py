"""Participants on a cluster are killed or stopped, or a whole node is, at random moments, ``HOGWILD_KILLS`` times each.

Every run ends soon enough, at the same objective as one that nothing happens to; with a ledger for a problem, no push
is lost and none counts twice. ``HOGWILD_SEED`` repeats a sequence.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

sys.path.append(str(Path(__file__).parents[1] / "cluster"))

import ledgers
from talkers import train

from hogwild import Gossip, ParameterServer, Ray, Synchronous

ray = pytest.importorskip("ray", reason="pip install 'hogwild[ray]'")
pytestmark = pytest.mark.skipif(
    "HOGWILD_KILLS" not in os.environ, reason="make chaos; single deaths are in tests/cluster/test_on_a_cluster.py"
)
KILLS = int(os.environ.get("HOGWILD_KILLS", "1"))
SEED = int(os.environ.get("HOGWILD_SEED", str(random.SystemRandom().randrange(10**6))))
HEARTBEAT = 3.0
STARTING = 15.0  # seconds in which a process comes up on a machine with other things to do
WORKERS = 3
SLOW = Ray(heartbeat=HEARTBEAT, slow=dict.fromkeys(range(WORKERS), 0.03), cpus=0.5)
STRATEGIES = {
    "parameter server": ParameterServer(WORKERS, shards=2, push_every=4),
    "gossip": Gossip("ring", workers=WORKERS, period=4),
    "synchronous": Synchronous(WORKERS, accumulate=2),
}
WAYS = ("kill a worker", "kill a server", "kill a node", "stop a worker")
NODE = {"num_cpus": 4, "object_store_memory": 100 << 20}


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    ray.init(cluster.address, logging_level="error", log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


class Fate:
    """Does something to somebody so many seconds after the run has begun, if there is somebody."""

    def __init__(self, way: str, after: float, luck: float, node: Any) -> None:
        self.way, self.after, self.luck, self.node = way, after, luck, node
        self.placed: dict[str, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []
        self.struck = ""
        self.timer = threading.Timer(after, self.strike)

    def __call__(self, event: str, **more: Any) -> None:
        self.events.append({"event": event, **more})
        if event == "placed":
            self.placed[more["participant"]] = more
        elif event == "ready":
            self.timer.start()

    @property
    def dead(self) -> list[str]:
        """Who has died."""
        return [event["participant"] for event in self.events if event["event"] == "died"]

    def strike(self) -> None:
        if self.way == "kill a node":
            raylet = psutil.Process(self.node.all_processes["raylet"][0].process.pid)
            self.struck = self.way
            for process in (raylet, *raylet.children(recursive=True)):
                process.kill()
            return
        kind = self.way.rpartition(" ")[2]
        names = sorted(name for name in self.placed if name.startswith(kind))
        if names:
            victim = self.placed[names[int(self.luck * len(names))]]
            self.struck = victim["participant"]
            os.kill(victim["process"], signal.SIGSTOP if self.way.startswith("stop") else signal.SIGKILL)


@pytest.fixture
def fate(cluster):
    """Another node for each run, and what happens."""
    chance, nodes = random.Random(SEED), []

    def one(way: str, within: float) -> Fate:
        for node in nodes:
            cluster.remove_node(node, allow_graceful=False)
        nodes[:] = [cluster.add_node(**NODE)]
        return Fate(way, chance.uniform(0, within), chance.random(), nodes[0])

    yield one
    for node in nodes:
        cluster.remove_node(node, allow_graceful=False)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", STRATEGIES)
def test_the_objective_is_the_same(fate, name, way):
    strategy = STRATEGIES[name]
    if way == "kill a server" and name == "gossip":
        pytest.skip("there is none")
    fate("nothing", 0.0)
    usual = train(strategy, SLOW, budget=25)
    for turn in range(KILLS):
        what = fate(way, 0.8 * usual.seconds)
        run = train(strategy, SLOW, budget=25, callbacks=[lambda event, what=what: what(**event)])
        what.timer.cancel()
        told = f"seed {SEED}, turn {turn}: {what.struck or 'nobody'} after {what.after:.2f} s; dead: {what.dead}"
        assert run.stopped == "epochs", told
        assert run.objective <= 1.01 * usual.objective, told
        assert run.seconds <= 2 * usual.seconds + HEARTBEAT + STARTING, told


@pytest.mark.parametrize("way", WAYS)
def test_no_push_is_lost_or_counts_twice(fate, way, tmp_path):
    strategy = ParameterServer(WORKERS, shards=2)
    for turn in range(KILLS):
        what, folder = fate(way, 2.5), tmp_path / str(turn)
        folder.mkdir()
        outcome = SLOW.play(ledgers.company(strategy, 250, 0.0, folder, what))
        what.timer.cancel()
        assert outcome.reason == "epochs", f"seed {SEED}, turn {turn}"
        ledgers.check(outcome, folder, WORKERS, ledgers.processes_of_the_dead(what.events))
