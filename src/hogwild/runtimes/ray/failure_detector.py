"""Failure detector of a cluster: a node that does not answer heartbeat requests in time counts as crashed."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.messaging.messages import COORDINATOR
from hogwild.runtimes.ray.placement import ActorRecord

# Factor of the heartbeat timeout for a process that is not ready yet. Such a process reads data and compiles, so it
# answers late. No other node waits for it yet.
PREPARING = 5
# Factor of the heartbeat timeout for the coordinator. It cannot be replaced: if the driver takes a slow coordinator for
# crashed, the run is lost. A process that has really ended is reported by Ray at once, whatever the timeout.
IRREPLACEABLE = 10


@dataclass(frozen=True, slots=True)
class FailureDetector:
    """Decisions about nodes from the times of their answers, in seconds of one clock.

    Parameters
    ----------
    heartbeat_timeout : float
        Seconds without an answer after which a node counts as crashed.
    startup_timeout : float
        Seconds that a process has to become ready.
    """

    heartbeat_timeout: float
    startup_timeout: float

    def limit(self, record: ActorRecord) -> float:
        """Return the seconds without an answer after which this node counts as crashed."""
        if record.name == COORDINATOR:
            return self.heartbeat_timeout * IRREPLACEABLE
        return self.heartbeat_timeout * (1 if record.ready else PREPARING)

    def has_failed(self, record: ActorRecord, now: float) -> bool:
        """Return whether a node with an outstanding heartbeat request has not answered for too long."""
        waiting = record.location is not None and record.pending_call is not None
        return waiting and now - record.last_answer > self.limit(record)

    def is_late(self, record: ActorRecord, now: float) -> bool:
        """Return whether a process has not become ready in time."""
        return not record.ready and now - record.requested > self.startup_timeout

    def suspended(self, pause: float) -> bool:
        """Return whether the driver itself was suspended, if it has not polled for ``pause`` seconds.

        Such a pause does not count as the silence of a node.
        """
        return pause > self.heartbeat_timeout / 2

    def interval(self, record: ActorRecord, shortest: float) -> float:
        """Return the seconds until the next heartbeat request; ``shortest`` for nodes whose news the driver awaits."""
        frequent = record.name == COORDINATOR or not record.started
        return shortest if frequent else self.heartbeat_timeout / 3
