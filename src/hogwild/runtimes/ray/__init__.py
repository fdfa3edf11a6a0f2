"""Message-passing strategies on a Ray cluster: each node is a Ray actor, which may crash and restart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hogwild.delays import DelayOption, check_by_worker, per_worker
from hogwild.messaging.job import MessageJob, Outcome
from hogwild.registry import invalid_parameter
from hogwild.runtimes.messaging.injected_faults import Link
from hogwild.runtimes.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Ray(Runtime):
    """Runtime for message-passing strategies on a Ray cluster, with one process for each node (extra ``ray``).

    A *node* is a worker, a server or the coordinator. A *Ray node* is a member of the cluster.

    Parameters
    ----------
    address : str, optional
        Address of the cluster's head, or "auto" for the cluster on this machine. The default is the variable
        ``RAY_ADDRESS``. Without the variable, the run starts a cluster on this machine and stops it at the end.
    heartbeat_timeout : float, default 3.0
        Seconds without an answer after which a node counts as crashed, is terminated and restarted. The coordinator,
        which cannot be replaced, has ten times as long.
    max_restarts : int, default 3
        Maximal number of restarts of each node.
    cpus_per_worker : float, default 1.0
        CPUs of the cluster that each worker reserves, for each of its cores where it has several.
    startup_timeout : float, default 120.0
        Seconds that a process has to start and to be ready.
    stall_timeout : float, default 600.0
        Seconds without any message after which the run fails.
    delay : float, str, Delay, or mapping of int to these, default 0.0
        Seconds that a worker waits with each of its updates, for all workers or by worker number (`hogwild.delays`).
        After each burst the worker sleeps for the sum over the burst's updates. It holds the result of the burst
        meanwhile, which so becomes stale, and handles no message. When the run ends, no worker waits any longer.
    join_times : mapping of int to float, default {}
        Seconds after the start at which a worker's process is started, by worker number. All others start at once.
    standby_servers : int, default 1
        Number of idle processes. One of them replaces a crashed parameter server, so that no worker waits for a process
        to start.
    link : Link, optional
        Latency, bandwidth, loss, duplication and reordering to inject.
    admission_timeout : float, default 10.0
        Seconds that ready workers wait for workers that the cluster has no room for. The latter join later, such as
        when Ray nodes are added.

    Raises
    ------
    ParameterError
        If an option is outside its range.

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
    delay: DelayOption = 0.0
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
        object.__setattr__(self, "delay", per_worker(self.delay))
        check_by_worker("join_times", self.join_times, "seconds")
        if self.link is not None and not isinstance(self.link, Link):
            raise invalid_parameter(
                "link", "Link(latency, bandwidth, loss, duplication, reordering) or None", self.link
            )

    passes_messages = True
    saves_checkpoints = True

    @property
    def message_seconds(self) -> float:
        """The seconds of a push and a pull without their contents: by sockets on one Ray node, else by calls of Ray."""
        from hogwild.runtimes.ray.connection import has_one_node

        return 1e-3 if has_one_node(self.address) else 8e-3

    def play(self, job: MessageJob) -> Outcome:
        """Run a job to its end on the cluster.

        Parameters
        ----------
        job : MessageJob
            Roles, trainers and configuration of the run.

        Returns
        -------
        Outcome
            Parameters, counters and traffic of the run.

        Raises
        ------
        MissingExtraError
            If the package ``ray`` is not installed.
        WorkerError
            If the cluster cannot be used, or if a node fails and cannot be restarted.
        """
        from hogwild.runtimes.ray.connection import connected, load

        load()
        from hogwild.runtimes.ray.driver import RayDriver

        with connected(self.address, self.cpus_per_worker * job.cores * job.config.workers) as ray:
            return RayDriver(ray, self, job).play()

    def describe(self) -> dict[str, Any]:
        """Return the configuration for the record of a run.

        Returns
        -------
        dict
            The ``repr`` of this runtime as ``runtime``.
        """
        return {"runtime": repr(self)}
