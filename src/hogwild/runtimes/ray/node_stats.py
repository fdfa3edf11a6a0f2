"""Statistics of the nodes of a run, for tables and for Ray's metrics.

The driver records all metrics, with the tags ``run`` and ``participant``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from hogwild.messaging.messages import GossipPush, GossipReply, Push
from hogwild.messaging.reliable_channel import is_durable
from hogwild.runtimes.ray.actor import Heartbeat
from hogwild.runtimes.ray.placement import ActorRecord

PUSHES = tuple(kind.__name__ for kind in (Push, GossipPush, GossipReply))  # messages that carry parameters or deltas


@dataclass(frozen=True, slots=True)
class NodeStats:
    """State of one node. Rates are means over the time between its last two heartbeats."""

    participant: str
    node: str = ""  # id of the Ray node
    process: int = 0  # process id
    life: int = 0  # incarnation
    state: str = "starting"  # "starting", "preparing", "ready", "working", "silent" or "gone"
    bursts: int = 0
    updates_rate: float = 0.0  # updates per second
    staleness: float | None = None  # mean staleness of the worker's deltas
    pushes_rate: float = 0.0  # messages with parameters or deltas, per second
    bytes_rate: float = 0.0  # bytes per second
    restarts: int = 0  # crashes of the node, each followed by a restart as long as ``max_restarts`` allows
    silent: float = 0.0  # seconds since the last answer


@dataclass(frozen=True, slots=True)
class Throughput:
    """Work of a node between two heartbeats."""

    seconds: float  # seconds between the heartbeats
    updates: int = 0
    bursts: int = 0
    pushes: int = 0
    bytes: int = 0
    delays: Mapping[str, Counter[int]] = field(default_factory=dict)  # for each worker: staleness -> occurrences


def done(before: Heartbeat, after: Heartbeat, seconds: float) -> Throughput:
    """Return the work between two heartbeats of one incarnation, which are ``seconds`` apart.

    >>> done(Heartbeat(updates=10), Heartbeat(updates=30), 0.5).updates
    20
    """
    delays = {
        worker: fresh for worker, counts in after.delays.items()
        if (fresh := Counter(counts) - Counter(before.delays.get(worker, {})))
    }  # fmt: skip
    return Throughput(
        seconds, after.updates - before.updates, after.bursts - before.bursts, _pushes(after) - _pushes(before),
        _bytes(after) - _bytes(before), delays,
    )  # fmt: skip


def _pushes(pulse: Heartbeat) -> int:
    return sum(each.messages for kind, each in pulse.traffic.items() if kind in PUSHES)


def _bytes(pulse: Heartbeat) -> int:
    return sum(each.bytes for each in pulse.traffic.values())


class ClusterStats:
    """Statistics of all nodes, from their last heartbeats."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, float, Heartbeat]] = {}
        self._rates: dict[str, Throughput] = {}
        self._staleness: dict[str, float] = {}

    def note(self, place: ActorRecord) -> Throughput | None:
        """Record a heartbeat; return the work since the previous one, or None if the node does not take part yet."""
        pulse, name, began = place.pulse, place.name, place.since
        if began is None:
            return None
        life, when, before = self._last.get(name, (place.life, began, Heartbeat()))
        if life != place.life:
            # A restarted server restores its counts of staleness, so only those continue from the last heartbeat.
            when, before = began, Heartbeat(delays=before.delays if is_durable(name) else {})
        if place.seen <= when:
            return None
        self._last[name] = place.life, place.seen, pulse
        since = self._rates[name] = done(before, pulse, place.seen - when)
        for worker, counts in since.delays.items():
            mean = sum(delay * times for delay, times in counts.items()) / counts.total()
            self._staleness[worker] = mean
        return since

    def rows(
        self,
        cast: Iterable[str],
        places: Mapping[str, ActorRecord],
        deaths: Mapping[str, int],
        now: float,
        heartbeat: float,
    ) -> list[dict[str, Any]]:
        """Return the statistics of all nodes as plain values, in the order of ``cast``.

        Parameters
        ----------
        cast : iterable of str
            Names of all nodes.
        places : mapping of str to ActorRecord
            Running and starting nodes.
        deaths : mapping of str to int
            Number of crashes of each node.
        now : float
            Present time, in seconds.
        heartbeat : float
            Heartbeat timeout, in seconds. A node is "silent" after half of it without an answer.
        """
        rows = []
        for name in cast:
            row = NodeStats(name, restarts=deaths.get(name, 0), staleness=self._staleness.get(name))
            place = places.get(name)
            rows.append(asdict(self._of(row, place, now, heartbeat) if place else replace(row, state="gone")))
        return rows

    def _of(self, row: NodeStats, place: ActorRecord, now: float, heartbeat: float) -> NodeStats:
        rates = self._rates.get(place.name, Throughput(1.0))
        silent = max(0.0, now - place.seen)
        where: dict[str, Any] = {}
        if place.where is not None:
            where = {"node": place.where.node, "process": place.where.process}
        return replace(
            row, **where, life=place.life, state=_state(place, silent > heartbeat / 2), bursts=place.pulse.bursts,
            updates_rate=rates.updates / rates.seconds, pushes_rate=rates.pushes / rates.seconds,
            bytes_rate=rates.bytes / rates.seconds, silent=silent if place.where is not None else 0.0,
        )  # fmt: skip


def _state(place: ActorRecord, silent: bool) -> str:
    if place.where is None:
        return "starting"
    if silent:
        return "silent"
    return "working" if place.begun else "ready" if place.ready else "preparing"


TAGS = ("run", "participant")
STALENESS = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]  # bounds of the histogram, in deltas by other workers
COUNTED = {
    "updates": "Updates by a worker.",
    "bursts": "Bursts of updates by a worker.",
    "pushes": "Messages with parameters, or changes of them, by a participant.",
    "bytes": "Bytes in messages by a participant.",
    "restarts": "Times that a participant died and was started again.",
}


class Metrics:
    """Metrics of one run: the histogram ``ray_hogwild_staleness``, and counters such as ``ray_hogwild_pushes_total``.

    ``run`` is the identifier of the run, which tags each metric.
    """

    def __init__(self, run: str) -> None:
        from ray.util.metrics import Counter, Histogram

        self.run = run
        self._counters = {name: Counter(f"hogwild_{name}", words, TAGS) for name, words in COUNTED.items()}
        # Ray requires boundaries above zero. With an offset of 0.5, staleness 0 falls below the first boundary.
        boundaries = [bound + 0.5 for bound in STALENESS]
        words = "Changes by others between the reading and the arrival of a worker's change."
        self._staleness = Histogram("hogwild_staleness", words, boundaries, TAGS)

    def note(self, participant: str, done: Throughput) -> None:
        """Record the work of a node between two heartbeats."""
        for name in ("updates", "bursts", "pushes", "bytes"):
            self._count(name, participant, getattr(done, name))
        for worker, counts in done.delays.items():
            for delay, times in counts.items():
                for _ in range(times):
                    self._staleness.observe(delay, self._tags(worker))

    def restarted(self, participant: str) -> None:
        """Count a restart of a node."""
        self._count("restarts", participant, 1)

    def _count(self, name: str, participant: str, more: float) -> None:
        if more > 0:
            self._counters[name].inc(more, self._tags(participant))

    def _tags(self, participant: str) -> dict[str, str]:
        return {"run": self.run, "participant": participant}
