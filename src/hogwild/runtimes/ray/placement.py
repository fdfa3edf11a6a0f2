"""Where participants are: processes that are started on the nodes of a cluster, and killed."""

from __future__ import annotations

import os
import signal
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import psutil

from hogwild.messaging.messages import COORDINATOR
from hogwild.messaging.reliable_channel import is_durable
from hogwild.runtimes.messaging.actor import now
from hogwild.runtimes.ray.actor import ActorLocation, Heartbeat, RayActor, here

SPARE = "spare"  # who is nobody yet


@dataclass(eq=False)
class ActorRecord:
    """One life of a participant, as the driver knows it."""

    name: str
    life: int
    handle: Any
    born: float = field(default_factory=now)
    seen: float = field(default_factory=now)  # when it last answered
    asked: Any = None  # what it has not answered yet
    due: float = 0.0  # when it is asked again
    where: ActorLocation | None = None  # known once its process is up
    since: float | None = None  # when it began
    pulse: Heartbeat = field(default_factory=Heartbeat)

    @property
    def ready(self) -> bool:
        """Whether it can begin."""
        return self.pulse.ready

    @property
    def begun(self) -> bool:
        """Whether it takes part."""
        return self.since is not None


class Placement:
    """Starts seats and ends them; all get the same ``arguments``.

    ``whole`` and ``without_data`` are the job in the object store, the latter for servers. ``suspects`` are nodes
    on which somebody has fallen silent.
    """

    def __init__(self, ray: Any, cpus: float, whole: Any, without_data: Any, *arguments: Any) -> None:
        self.ray, self.cpus, self.whole, self.without_data, self.arguments = ray, cpus, whole, without_data, arguments
        self.suspects: set[str] = set()
        self._spares: list[tuple[Any, Any]] = []  # handles, and what they answer when they are up
        self._homes: dict[str, str] = {}  # of servers
        self._seat = ray.remote(RayActor)
        self._mine = ray.get_runtime_context().get_node_id()
        self._machine = here()

    def start(self, name: str, life: int) -> ActorRecord:
        """Have a life begin: the coordinator on this node, servers and workers spread over all of them."""
        stood_by = self._taken(name) if is_durable(name) else None
        if stood_by is not None:
            handle, where = stood_by
            handle.become.remote(name, life)
            return ActorRecord(name, life, handle, where=where)
        if name == COORDINATOR:
            handle = self._new(name, life, self._on(self._mine))
        elif is_durable(name):
            handle = self._new(name, life, self._on(self._least(name)))
        else:
            handle = self._new(name, life, self._spread(), self.cpus)
        return ActorRecord(name, life, handle, asked=handle.where.remote())

    def _new(self, name: str, life: int, where: Any, cpus: float = 0.0) -> Any:
        options = {"num_cpus": cpus, "max_restarts": 0, "max_task_retries": 0, "scheduling_strategy": where}
        job = self.without_data if name == SPARE or is_durable(name) else self.whole
        return self._seat.options(**options).remote(name, life, job, *self.arguments)

    def _on(self, node: str) -> Any:
        """That node and no other: Ray takes a mere wish lightly. If it is gone, the seat counts as dead."""
        return self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)

    def stand_by(self, number: int) -> None:
        """Have so many processes ready to become servers: on this node, without which the run is over anyway."""
        for _ in range(number - len(self._spares)):
            handle = self._new(SPARE, 0, self._on(self._mine))
            self._spares.append((handle, handle.where.remote()))

    def _taken(self, name: str) -> tuple[Any, ActorLocation] | None:
        """One that stands by and is up, and where it is."""
        for spare in list(self._spares):
            handle, up = spare
            if not self.ray.wait([up], timeout=0)[0]:
                continue
            self._spares.remove(spare)
            with suppress(self.ray.exceptions.RayError):
                where: ActorLocation = self.ray.get(up)
                self._homes[name] = self._mine
                return handle, where
        return None

    def dismiss(self) -> None:
        """Nobody need stand by any more."""
        for handle, _ in self._spares:
            with suppress(Exception):
                self.ray.kill(handle, no_restart=True)
        self._spares = []

    def _spread(self) -> Any:
        """All nodes, but those that somebody has fallen silent on only if there is no room elsewhere.

        A node that is cut off counts as alive until Ray has given it up, and who is sent there waits for that.
        """
        nodes = [node for node in self.ray.nodes() if node["Alive"]]
        label = next((key for node in nodes for key, value in node["Labels"].items() if value == node["NodeID"]), None)
        if label is None or not self.suspects:
            return "SPREAD"
        strategies = self.ray.util.scheduling_strategies
        return strategies.NodeLabelSchedulingStrategy({}, soft={label: strategies.NotIn(*sorted(self.suspects))})

    def _least(self, name: str) -> str:
        """The node with the fewest servers, of those that nobody has fallen silent on."""
        nodes: list[str] = [node["NodeID"] for node in self.ray.nodes() if node["Alive"]]
        trusted = [node for node in nodes if node not in self.suspects] or nodes
        self._homes.pop(name, None)
        servers = Counter(self._homes.values())
        home = self._homes[name] = min(trusted, key=lambda node: servers[node], default=self._mine)
        return home

    def end(self, place: ActorRecord, silent: bool = False) -> None:
        """Kill somebody. Ray asks a process to end first, which one that stands still does not hear for seconds."""
        with suppress(Exception):
            self.ray.kill(place.handle, no_restart=True)
        if silent and place.where is not None and place.where.machine == self._machine:
            with suppress(psutil.Error, OSError):
                if psutil.Process(place.where.process).create_time() == place.where.created:
                    os.kill(place.where.process, signal.SIGKILL)

    def full(self, seated: int) -> bool:
        """Whether so many workers are all that there is room for: no other has a CPU, nor can it get one.

        What is taken beyond theirs may be of workers whose processes are being started, or of others.
        """
        free = float(self.ray.available_resources().get("CPU", 0.0))
        taken = self._all_cpus() - free
        return free < self.cpus and taken < (seated + 1) * self.cpus

    def _all_cpus(self) -> float:
        return float(sum(node["Resources"].get("CPU", 0.0) for node in self.ray.nodes() if node["Alive"]))

    def room(self) -> str:
        """What the cluster has, in words."""
        nodes = [node for node in self.ray.nodes() if node["Alive"]]
        return f"the cluster has {len(nodes)} nodes with {self._all_cpus():g} CPUs, and each worker takes {self.cpus:g}"
