"""Clusters of several nodes on this machine, and what happens to those who are on them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psutil

NODE = {"num_cpus": 4, "object_store_memory": 100 << 20}


@contextmanager
def cluster_of(nodes: int) -> Iterator[Any]:
    """So many nodes, to which this process is connected."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    try:
        patiently(lambda: cluster.add_node(**NODE, include_dashboard=False))
        for _ in range(nodes - 1):
            patiently(lambda: cluster.add_node(**NODE))
        ray.init(cluster.address, logging_level="error", log_to_driver=False)
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def patiently(start: Callable[[], Any], times: int = 4) -> Any:
    """Start a node; Ray gives up after half a minute, which on a busy machine is not always enough."""
    before = set(psutil.Process().children(recursive=True))
    for _ in range(times - 1):
        with suppress(Exception):
            return start()
        for process in set(psutil.Process().children(recursive=True)) - before:
            with suppress(psutil.Error):
                process.kill()  # or there would be a node that nobody knows, some time
    return start()


def seats(cluster: Any) -> list[psutil.Process]:
    """The processes of participants."""
    found = []
    for node in cluster.list_all_nodes():
        with suppress(psutil.Error):
            raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
            found += [each for each in raylet.children(recursive=True) if _is_actor(each)]
    return found


def _is_actor(process: psutil.Process) -> bool:
    try:
        return process.name().startswith("ray::RayActor")
    except psutil.NoSuchProcess:  # it has ended since it was listed
        return False


def assert_nothing_is_left(cluster: Any) -> None:
    """No process of a run outlives it."""
    _, left = psutil.wait_procs(seats(cluster), timeout=20)
    assert left == []


def kill_node(node: Any) -> None:
    """As if its machine had gone: all of its processes at once."""
    raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
    for process in (raylet, *raylet.children(recursive=True)):
        with suppress(psutil.Error):
            process.kill()


class Fate:
    """Hears what is told of a run, and does things to participants at some times after it has begun."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.placed: dict[str, dict[str, Any]] = {}
        self.struck: list[str] = []
        self._plans: list[tuple[float, Callable[[], None]]] = []
        self._timers: list[threading.Timer] = []
        self._wake: set[str] = set()  # who is to wake up when it is dead

    def __call__(self, event: str, **more: Any) -> None:
        self.events.append({"event": event, **more})
        if event == "cluster":
            self.events[-1] |= {"load": os.getloadavg()[0], "stolen": psutil.cpu_times().steal}
        if event == "placed":
            self.placed[more["node"]] = more
        elif event == "ready":
            self._timers = [threading.Timer(after, strike) for after, strike in self._plans]
            for timer in self._timers:
                timer.start()
        elif event == "crashed" and more["node"] in self._wake:
            self._signal(more["node"], signal.SIGCONT)

    def at(self, seconds: float, strike: Callable[[], None]) -> None:
        """Do something so many seconds after it has begun."""
        self._plans.append((seconds, strike))

    def over(self) -> None:
        """What has not happened yet does not happen any more."""
        for timer in self._timers:
            timer.cancel()
            timer.join()

    def of(self, kind: str) -> list[dict[str, Any]]:
        """What was told of a kind."""
        return [event for event in self.events if event["event"] == kind]

    def story(self) -> str:
        """Who had done how much by when, and who was silent: to see what a run that took too long waited for."""
        lines = []
        for event in self.events:
            if event["event"] == "cluster":
                rows = event["nodes"]
                done = " ".join(f"{row['node']} {row['bursts']}, silent {row['silent']:.1f};" for row in rows)
                lines.append(
                    f"{event['seconds']:6.2f} s: {done} load {event['load']:.1f}, stolen {event['stolen']:.0f}"
                )
            elif event["event"] in ("epoch", "crashed", "placed"):
                lines.append(f"{event['seconds']:6.2f} s: {event['event']} {event.get('node', '')}")
        return "\n".join(lines)

    @property
    def dead(self) -> set[str]:
        """Who has died."""
        return {event["node"] for event in self.of("crashed")}

    def kill(self, *names: str) -> None:
        """Kill some at once."""
        for name in names:
            self._signal(name, signal.SIGKILL)
        self.struck += names

    def stop(self, name: str, wake: bool = False) -> None:
        """Let somebody stand still, for ever or until it is dead for the others."""
        if wake:
            self._wake.add(name)
        self._signal(name, signal.SIGSTOP)
        self.struck.append(name)

    def end(self, node: Any) -> None:
        """Let a node die."""
        self.struck += [name for name, where in self.placed.items() if where["ray_node"] == node.node_id]
        kill_node(node)

    def _signal(self, name: str, which: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.placed[name]["process"], which)
