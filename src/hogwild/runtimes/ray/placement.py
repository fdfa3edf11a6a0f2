"""Placement of nodes: starts and terminates processes on the Ray nodes of a cluster."""

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

SPARE = "spare"  # name of a standby process that has not become a server yet


@dataclass(eq=False)
class ActorRecord:
    """The driver's record of one incarnation of a node. All times are seconds of ``now()``."""

    name: str
    life: int
    handle: Any
    born: float = field(default_factory=now)  # time at which the driver requested the process
    seen: float = field(default_factory=now)  # time of the last answer
    asked: Any = None  # the call that the actor has not answered yet
    due: float = 0.0  # time of the next heartbeat request
    where: ActorLocation | None = None  # location; None until the process runs
    since: float | None = None  # time at which the node started to take part in the run
    pulse: Heartbeat = field(default_factory=Heartbeat)  # last heartbeat

    @property
    def ready(self) -> bool:
        """Whether the node has finished its preparation and can start."""
        return self.pulse.ready

    @property
    def begun(self) -> bool:
        """Whether the node takes part in the run."""
        return self.since is not None


class Placement:
    """Starts and terminates the actors of a run.

    ``suspects`` holds the ids of Ray nodes on which an actor has stopped answering. New actors avoid those Ray nodes.

    Parameters
    ----------
    ray : module
        The module ``ray``, connected to a cluster.
    cpus : float
        CPUs that each worker reserves.
    whole : ray.ObjectRef
        The job in the object store, for workers and the coordinator.
    without_data : ray.ObjectRef
        The job without its data, for servers.
    *arguments : Any
        Further arguments of ``RayActor``, the same for all actors.
    """

    def __init__(self, ray: Any, cpus: float, whole: Any, without_data: Any, *arguments: Any) -> None:
        self.ray, self.cpus, self.whole, self.without_data, self.arguments = ray, cpus, whole, without_data, arguments
        self.suspects: set[str] = set()
        self._spares: list[tuple[Any, Any]] = []  # standby processes: handle, and object reference of the location
        self._homes: dict[str, str] = {}  # the Ray node of each server
        self._seat = ray.remote(RayActor)
        self._mine = ray.get_runtime_context().get_node_id()
        self._machine = here()

    def start(self, name: str, life: int) -> ActorRecord:
        """Start an incarnation of a node.

        The coordinator runs on the driver's Ray node. Servers and workers are spread over all Ray nodes. A server takes
        a standby process if one is running.
        """
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
        """Return a scheduling strategy for exactly this Ray node.

        Ray often ignores a soft affinity, so the affinity is hard. If the Ray node has failed, Ray reports the actor as
        failed.
        """
        return self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)

    def stand_by(self, number: int) -> None:
        """Keep this number of standby processes, which can become servers.

        They run on the driver's Ray node, because a failure of that Ray node ends the run anyway.
        """
        for _ in range(number - len(self._spares)):
            handle = self._new(SPARE, 0, self._on(self._mine))
            self._spares.append((handle, handle.where.remote()))

    def _taken(self, name: str) -> tuple[Any, ActorLocation] | None:
        """Return the handle and the location of a running standby process for a server; None without one."""
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
        """Terminate all standby processes."""
        for handle, _ in self._spares:
            with suppress(Exception):
                self.ray.kill(handle, no_restart=True)
        self._spares = []

    def _spread(self) -> Any:
        """Return a scheduling strategy over all Ray nodes, with the suspects as the last choice.

        Ray lists a disconnected Ray node as running until its own timeout. An actor that is scheduled there waits for
        that timeout.
        """
        nodes = [node for node in self.ray.nodes() if node["Alive"]]
        label = next((key for node in nodes for key, value in node["Labels"].items() if value == node["NodeID"]), None)
        if label is None or not self.suspects:
            return "SPREAD"
        strategies = self.ray.util.scheduling_strategies
        return strategies.NodeLabelSchedulingStrategy({}, soft={label: strategies.NotIn(*sorted(self.suspects))})

    def _least(self, name: str) -> str:
        """Return the Ray node with the fewest servers, without the suspects where others exist."""
        nodes: list[str] = [node["NodeID"] for node in self.ray.nodes() if node["Alive"]]
        trusted = [node for node in nodes if node not in self.suspects] or nodes
        self._homes.pop(name, None)
        servers = Counter(self._homes.values())
        home = self._homes[name] = min(trusted, key=lambda node: servers[node], default=self._mine)
        return home

    def end(self, place: ActorRecord, silent: bool = False) -> None:
        """Terminate an actor.

        Ray first asks the process to terminate. A suspended process does not react to that for seconds. So a ``silent``
        process on the driver's machine also gets SIGKILL, if its creation time shows that its id was not reused.
        """
        with suppress(Exception):
            self.ray.kill(place.handle, no_restart=True)
        if silent and place.where is not None and place.where.machine == self._machine:
            with suppress(psutil.Error, OSError):
                if psutil.Process(place.where.process).create_time() == place.where.created:
                    os.kill(place.where.process, signal.SIGKILL)

    def full(self, seated: int) -> bool:
        """Return whether the cluster has room for exactly this number of workers.

        Then the free CPUs are too few for one more worker. The reserved CPUs are too few for ``seated + 1`` workers: if
        they were enough, the excess might belong to starting workers or to other programs.
        """
        free = float(self.ray.available_resources().get("CPU", 0.0))
        taken = self._all_cpus() - free
        return free < self.cpus and taken < (seated + 1) * self.cpus

    def _all_cpus(self) -> float:
        return float(sum(node["Resources"].get("CPU", 0.0) for node in self.ray.nodes() if node["Alive"]))

    def room(self) -> str:
        """Return a description of the cluster's Ray nodes and CPUs, for error messages."""
        nodes = [node for node in self.ray.nodes() if node["Alive"]]
        return f"the cluster has {len(nodes)} nodes with {self._all_cpus():g} CPUs, and each worker takes {self.cpus:g}"
