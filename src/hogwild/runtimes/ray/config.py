"""A cluster: what is asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hogwild.messaging.job import MessageJob, Outcome
from hogwild.registry import invalid_parameter
from hogwild.runtimes.messaging.network_model import Link
from hogwild.runtimes.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Ray(Runtime):
    """Run a message-passing strategy on a Ray cluster, one process for each node (extra ``ray``).

    Parameters
    ----------
    address : str, optional
        Address of the cluster's head, or "auto" for the cluster on this machine. By default the variable
        ``RAY_ADDRESS``; without it a cluster is started on this machine and stopped at the end.
    heartbeat_timeout : float, default 3.0
        Seconds without an answer after which a node counts as dead, is killed and started again.
    max_restarts : int, default 3
        How often each node is started again.
    cpus_per_worker : float, default 1.0
        CPUs of the cluster that each worker reserves, for each of its cores where it has several.
    startup_timeout : float, default 120.0
        Seconds that a process has to start and to be ready.
    stall_timeout : float, default 600.0
        Seconds without any message after which the run fails.
    extra_seconds : mapping of int to float, default {}
        Seconds that a worker sleeps after each burst, by worker number.
    join_times : mapping of int to float, default {}
        Seconds after the start at which a worker is started, by worker number; all others start at once.
    standby_servers : int, default 1
        Idle processes that replace a parameter server that dies, so that no worker waits for a process to start.
    link : Link, optional
        Latency, loss, duplication and reordering to inject.
    admission_timeout : float, default 10.0
        Seconds that ready workers wait for workers that the cluster has no room for. Those join later, such as when
        nodes are added.

    Examples
    --------
    >>> Ray(heartbeat_timeout=5.0).max_restarts
    3
    """

    address: str | None = None
    heartbeat_timeout: float = 3.0
    max_restarts: int = 3
    cpus_per_worker: float = 1.0
    startup_timeout: float = 120.0
    stall_timeout: float = 600.0
    extra_seconds: Mapping[int, float] = field(default_factory=dict)
    join_times: Mapping[int, float] = field(default_factory=dict)
    standby_servers: int = 1
    link: Link | None = None
    admission_timeout: float = 10.0

    def __post_init__(self) -> None:
        if self.address is not None and not isinstance(self.address, str):
            raise invalid_parameter("address", "an address such as '10.0.0.1:6379', 'auto' or None", self.address)
        for name in ("heartbeat_timeout", "startup_timeout", "stall_timeout"):
            if not 0 < getattr(self, name) < math.inf:
                raise invalid_parameter(name, "a positive number of seconds", getattr(self, name))
        for name, what in (("max_restarts", "times"), ("standby_servers", "processes")):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 0:
                raise invalid_parameter(name, f"a number of {what}, at least 0", getattr(self, name))
        if not 0 <= self.cpus_per_worker < math.inf:
            raise invalid_parameter("cpus_per_worker", "a number of CPUs, at least 0", self.cpus_per_worker)
        if not self.admission_timeout >= 0:
            raise invalid_parameter("admission_timeout", "a number of seconds", self.admission_timeout)
        for name in ("extra_seconds", "join_times"):
            if not all(0 <= seconds < math.inf for seconds in getattr(self, name).values()):
                raise invalid_parameter(name, "seconds for some workers, such as {2: 0.05}", getattr(self, name))
        if self.link is not None and not isinstance(self.link, Link):
            raise invalid_parameter(
                "link", "Link(latency, bandwidth, loss, duplication, reordering) or None", self.link
            )

    passes_messages = True
    saves_checkpoints = True

    @property
    def mentioned_workers(self) -> set[int]:
        """Numbers of workers that the options are about."""
        return {*self.extra_seconds, *self.join_times}

    def play(self, job: MessageJob) -> Outcome:
        """Run it to its end."""
        from hogwild.runtimes.ray.connection import connected, load

        load()
        from hogwild.runtimes.ray.driver import RayDriver

        with connected(self.address, self.cpus_per_worker * job.cores * job.config.workers) as ray:
            return RayDriver(ray, self, job).play()

    def describe(self) -> dict[str, Any]:
        """What was asked, for records."""
        return {"runtime": repr(self)}
