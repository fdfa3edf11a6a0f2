"""A cluster: what is asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hogwild.messaging.job import MessageJob, Outcome
from hogwild.registry import invalid_parameter
from hogwild.runtimes.messaging.network_model import Link


@dataclass(frozen=True, slots=True)
class Ray:
    """Run a strategy by messages on a Ray cluster, a process for each participant (extra ``ray``).

    ``address`` is that of the cluster's head, or "auto" for the one on this machine; left out, it is that of the
    variable ``RAY_ADDRESS``, and where there is none a cluster is started on this machine and stopped at the end.

    Who does not answer for ``heartbeat`` seconds is dead: it is killed, the others go on, and it is started again, up
    to ``restarts`` times. Processes have ``startup`` seconds to come up and to be ready. Each worker takes ``cpus`` of
    the cluster's CPUs, for each of its cores where it has several. ``spares`` are processes that stand by to take the
    place of a server that dies, so that nobody waits until one is started. ``slow`` are workers that take so many
    seconds more for each burst; ``late`` are workers that are started so many seconds after the run began. Workers for
    which there is no room are not waited for longer than ``gather`` seconds once the others are ready: they join when
    there is, such as when nodes are added. With a ``link`` messages are held up, lost and doubled as it says. When
    nobody has said anything for ``silence`` seconds, the run has failed.

    >>> Ray(heartbeat=5.0).restarts
    3
    """

    address: str | None = None
    heartbeat: float = 3.0
    restarts: int = 3
    cpus: float = 1.0
    startup: float = 120.0
    silence: float = 600.0
    slow: Mapping[int, float] = field(default_factory=dict)
    late: Mapping[int, float] = field(default_factory=dict)
    spares: int = 1
    link: Link | None = None
    gather: float = 10.0

    def __post_init__(self) -> None:
        if self.address is not None and not isinstance(self.address, str):
            raise invalid_parameter("address", "an address such as '10.0.0.1:6379', 'auto' or None", self.address)
        for name in ("heartbeat", "startup", "silence"):
            if not 0 < getattr(self, name) < math.inf:
                raise invalid_parameter(name, "a positive number of seconds", getattr(self, name))
        for name, what in (("restarts", "times"), ("spares", "processes")):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 0:
                raise invalid_parameter(name, f"a number of {what}, at least 0", getattr(self, name))
        if not 0 <= self.cpus < math.inf:
            raise invalid_parameter("cpus", "a number of CPUs, at least 0", self.cpus)
        if not self.gather >= 0:
            raise invalid_parameter("gather", "a number of seconds", self.gather)
        for name in ("slow", "late"):
            if not all(0 <= seconds < math.inf for seconds in getattr(self, name).values()):
                raise invalid_parameter(name, "seconds for some workers, such as {2: 0.05}", getattr(self, name))
        if self.link is not None and not isinstance(self.link, Link):
            raise invalid_parameter(
                "link", "Link(latency, bandwidth, loss, duplication, reordering) or None", self.link
            )

    virtual = False  # its seconds are real
    saves = True  # it can write checkpoints

    def play(self, company: MessageJob) -> Outcome:
        """Run it to its end."""
        from hogwild.runtimes.ray.connection import connected, load

        load()
        from hogwild.runtimes.ray.driver import RayDriver

        with connected(self.address, self.cpus * company.cores * company.setting.workers) as ray:
            return RayDriver(ray, self, company).play()

    def describe(self) -> dict[str, Any]:
        """What was asked, for records."""
        return {"runtime": repr(self)}
