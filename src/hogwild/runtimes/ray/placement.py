"""Placement of nodes: starts and terminates processes on the Ray nodes of a cluster."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import psutil

from hogwild.messaging.messages import COORDINATOR
from hogwild.messaging.reliable_channel import is_durable
from hogwild.process_start import process_start
from hogwild.runtimes.messaging.actor import now
from hogwild.runtimes.ray.actor import ActorLocation, Heartbeat, RayActor, machine_id
from hogwild.runtimes.ray.actor_context import ActorHandle
from hogwild.runtimes.ray.folder_locations import FolderLocations

STANDBY = "spare"  # name of a standby process that has not become a server yet


@dataclass(eq=False)
class ActorRecord:
    """The driver's record of one incarnation of a node. All times are seconds of ``now()``."""

    name: str
    incarnation: int
    handle: ActorHandle
    requested: float = field(default_factory=now)  # time at which the driver requested the process
    last_answer: float = field(default_factory=now)  # time of the last answer
    pending_call: Any = None  # the call that the actor has not answered yet
    due: float = 0.0  # time of the next heartbeat request
    location: ActorLocation | None = None  # location; None until the process runs
    since: float | None = None  # time at which the node started to take part in the run
    heartbeat: Heartbeat = field(default_factory=Heartbeat)  # last heartbeat

    @property
    def ready(self) -> bool:
        """Whether the node has finished its preparation and can start."""
        return self.heartbeat.ready

    @property
    def started(self) -> bool:
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
    locations : FolderLocations
        The Ray nodes that have the data of each worker.
    whole : ray.ObjectRef
        The job in the object store, for workers and the coordinator.
    without_data : ray.ObjectRef
        The job without its data, for servers.
    *arguments : object
        Further arguments of ``RayActor``, the same for all actors.
    """

    def __init__(
        self, ray: ModuleType, cpus: float, locations: FolderLocations, whole: object, without_data: object,
        *arguments: object,
    ) -> None:  # fmt: skip
        self.ray, self.cpus, self.whole, self.without_data, self.arguments = ray, cpus, whole, without_data, arguments
        self.locations = locations
        self.suspects: set[str] = set()
        self._standby: list[tuple[ActorHandle, object]] = []  # standby processes: handle, and call of ``location``
        self._server_nodes: dict[str, str] = {}  # the Ray node of each server
        self._actor_class = ray.remote(RayActor)
        self._driver_node = ray.get_runtime_context().get_node_id()
        self._machine_id = machine_id()

    def start(self, name: str, incarnation: int) -> ActorRecord:
        """Start an incarnation of a node.

        The coordinator runs on the driver's Ray node. Servers are spread over all Ray nodes, and workers over those
        that have their data. A server takes a standby process if one is running.
        """
        standby = self._take_standby(name) if is_durable(name) else None
        if standby is not None:
            handle, location = standby
            handle.become.remote(name, incarnation)
            return ActorRecord(name, incarnation, handle, location=location)
        if name == COORDINATOR:
            handle = self._create_actor(name, incarnation, self._affinity(self._driver_node))
        elif is_durable(name):
            handle = self._create_actor(name, incarnation, self._affinity(self._least_loaded_node(name)))
        else:
            nodes = self.locations.nodes_for(name)
            handle = self._create_actor(name, incarnation, self._spread_strategy(nodes), self.cpus)
        return ActorRecord(name, incarnation, handle, pending_call=handle.location.remote())

    def _create_actor(self, name: str, incarnation: int, strategy: object, cpus: float = 0.0) -> ActorHandle:
        options = {"num_cpus": cpus, "max_restarts": 0, "max_task_retries": 0, "scheduling_strategy": strategy}
        job = self.without_data if name == STANDBY or is_durable(name) else self.whole
        handle: ActorHandle = self._actor_class.options(**options).remote(name, incarnation, job, *self.arguments)
        return handle

    def _affinity(self, node: str) -> object:
        """Return a scheduling strategy for exactly this Ray node.

        Ray often ignores a soft affinity, so the affinity is hard. If the Ray node has failed, Ray reports the actor as
        failed.
        """
        return self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)

    def start_standby(self, number: int) -> None:
        """Keep this number of standby processes, which can become servers.

        They run on the driver's Ray node, because a failure of that Ray node ends the run anyway.
        """
        for _ in range(number - len(self._standby)):
            handle = self._create_actor(STANDBY, 0, self._affinity(self._driver_node))
            self._standby.append((handle, handle.location.remote()))

    def _take_standby(self, name: str) -> tuple[ActorHandle, ActorLocation] | None:
        """Return the handle and the location of a running standby process for a server; None without one."""
        for standby in list(self._standby):
            handle, located = standby
            if not self.ray.wait([located], timeout=0)[0]:
                continue
            self._standby.remove(standby)
            with suppress(self.ray.exceptions.RayError):
                location: ActorLocation = self.ray.get(located)
                self._server_nodes[name] = self._driver_node
                return handle, location
        return None

    def end_standby(self) -> None:
        """Terminate all standby processes."""
        for handle, _ in self._standby:
            with suppress(Exception):
                self.ray.kill(handle, no_restart=True)
        self._standby = []

    def _spread_strategy(self, only: Sequence[str] | None = None) -> object:
        """Return a scheduling strategy over all Ray nodes, or some of them, with the suspects as the last choice.

        Ray lists a disconnected Ray node as running until its own timeout. An actor that is scheduled there waits for
        that timeout.
        """
        nodes = [node for node in self.ray.nodes() if node["Alive"]]
        label = next((key for node in nodes for key, value in node["Labels"].items() if value == node["NodeID"]), None)
        strategies = self.ray.util.scheduling_strategies
        if only and (label is None or len(only) == 1):
            return self._affinity(only[0])
        if label is None or not (self.suspects or only):
            return "SPREAD"
        soft = {label: strategies.NotIn(*sorted(self.suspects))} if self.suspects else {}
        return strategies.NodeLabelSchedulingStrategy({label: strategies.In(*only)} if only else {}, soft=soft)

    def _least_loaded_node(self, name: str) -> str:
        """Return the Ray node with the fewest servers, without the suspects where others exist."""
        nodes: list[str] = [node["NodeID"] for node in self.ray.nodes() if node["Alive"]]
        trusted = [node for node in nodes if node not in self.suspects] or nodes
        self._server_nodes.pop(name, None)
        servers = Counter(self._server_nodes.values())
        chosen = self._server_nodes[name] = min(trusted, key=lambda node: servers[node], default=self._driver_node)
        return chosen

    def end(self, record: ActorRecord, silent: bool = False) -> None:
        """Terminate an actor.

        Ray first asks the process to terminate. A suspended process does not react to that for seconds. So a ``silent``
        process on the driver's machine also gets SIGKILL, if its start shows that its number was not used again.
        """
        with suppress(Exception):
            self.ray.kill(record.handle, no_restart=True)
        if silent and record.location is not None and record.location.machine == self._machine_id:
            with suppress(psutil.Error, OSError):
                if process_start(record.location.process) == record.location.started:
                    os.kill(record.location.process, signal.SIGKILL)

    def full(self, workers: int) -> bool:
        """Return whether the cluster has room for exactly this number of workers.

        Then the free CPUs are too few for one more worker. The reserved CPUs are too few for ``workers + 1`` workers:
        if they were enough, the excess might belong to starting workers or to other programs.
        """
        free = float(self.ray.available_resources().get("CPU", 0.0))
        taken = self._all_cpus() - free
        return free < self.cpus and taken < (workers + 1) * self.cpus

    def _all_cpus(self) -> float:
        return float(sum(node["Resources"].get("CPU", 0.0) for node in self.ray.nodes() if node["Alive"]))

    def capacity(self) -> str:
        """Return a description of the cluster's Ray nodes and CPUs, for error messages."""
        nodes = [node for node in self.ray.nodes() if node["Alive"]]
        return f"the cluster has {len(nodes)} nodes with {self._all_cpus():g} CPUs, and each worker takes {self.cpus:g}"
