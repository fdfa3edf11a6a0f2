"""Statistics of the nodes of a run, for tables and for Ray's metrics.

The driver records all metrics, with the tags ``run`` and ``node``.
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

    node: str
    ray_node: str = ""  # id of the Ray node
    process: int = 0  # process id
    incarnation: int = 0
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


def throughput(before: Heartbeat, after: Heartbeat, seconds: float) -> Throughput:
    """Return the work between two heartbeats of one incarnation, which are ``seconds`` apart.

    >>> throughput(Heartbeat(updates=10), Heartbeat(updates=30), 0.5).updates
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


def _pushes(heartbeat: Heartbeat) -> int:
    return sum(each.messages for kind, each in heartbeat.traffic.items() if kind in PUSHES)


def _bytes(heartbeat: Heartbeat) -> int:
    return sum(each.bytes for each in heartbeat.traffic.values())


class ClusterStats:
    """Statistics of all nodes, from their last heartbeats."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, float, Heartbeat]] = {}
        self._rates: dict[str, Throughput] = {}
        self._staleness: dict[str, float] = {}

    def add_heartbeat(self, record: ActorRecord) -> Throughput | None:
        """Record a heartbeat; return the work since the previous one, or None if the node does not take part yet."""
        heartbeat, name, began = record.heartbeat, record.name, record.since
        if began is None:
            return None
        incarnation, when, before = self._last.get(name, (record.incarnation, began, Heartbeat()))
        if incarnation != record.incarnation:
            # A restarted server restores its counts of staleness, so only those continue from the last heartbeat.
            when, before = began, Heartbeat(delays=before.delays if is_durable(name) else {})
        if record.last_answer <= when:
            return None
        self._last[name] = record.incarnation, record.last_answer, heartbeat
        since = self._rates[name] = throughput(before, heartbeat, record.last_answer - when)
        for worker, counts in since.delays.items():
            mean = sum(delay * times for delay, times in counts.items()) / counts.total()
            self._staleness[worker] = mean
        return since

    def rows(
        self,
        names: Iterable[str],
        records: Mapping[str, ActorRecord],
        crashes: Mapping[str, int],
        now: float,
        timeout: float,
    ) -> list[dict[str, Any]]:
        """Return the statistics of all nodes as plain values, in the order of ``names``.

        Parameters
        ----------
        names : iterable of str
            Names of all nodes.
        records : mapping of str to ActorRecord
            Running and starting nodes.
        crashes : mapping of str to int
            Number of crashes of each node.
        now : float
            Present time, in seconds.
        timeout : float
            Heartbeat timeout, in seconds. A node is "silent" after half of it without an answer.
        """
        rows = []
        for name in names:
            row = NodeStats(name, restarts=crashes.get(name, 0), staleness=self._staleness.get(name))
            record = records.get(name)
            rows.append(asdict(self._row(row, record, now, timeout) if record else replace(row, state="gone")))
        return rows

    def _row(self, row: NodeStats, record: ActorRecord, now: float, timeout: float) -> NodeStats:
        rates = self._rates.get(record.name, Throughput(1.0))
        silent = max(0.0, now - record.last_answer)
        location: dict[str, Any] = {}
        if record.location is not None:
            location = {"ray_node": record.location.node, "process": record.location.process}
        return replace(
            row, **location, incarnation=record.incarnation, state=_state(record, silent > timeout / 2),
            bursts=record.heartbeat.bursts, updates_rate=rates.updates / rates.seconds,
            pushes_rate=rates.pushes / rates.seconds, bytes_rate=rates.bytes / rates.seconds,
            silent=silent if record.location is not None else 0.0,
        )  # fmt: skip


def _state(record: ActorRecord, silent: bool) -> str:
    if record.location is None:
        return "starting"
    if silent:
        return "silent"
    return "working" if record.started else "ready" if record.ready else "preparing"


TAGS = ("run", "node")
STALENESS = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]  # bounds of the histogram, in deltas by other workers
COUNTED = {
    "updates": "Updates by a worker.",
    "bursts": "Bursts of updates by a worker.",
    "pushes": "Messages with parameters, or changes of them, by a node.",
    "bytes": "Bytes in messages by a node.",
    "restarts": "Times that a node crashed and was restarted.",
}


class Metrics:
    """Metrics of one run: the histogram ``ray_hogwild_staleness``, and counters such as ``ray_hogwild_pushes_total``.

    ``run`` is the identifier of the run, which tags each metric.
    """

    def __init__(self, run: str) -> None:
        from ray.util.metrics import Counter, Histogram

        self.run = run
        self._counters = {name: Counter(f"hogwild_{name}", description, TAGS) for name, description in COUNTED.items()}
        # Ray requires boundaries above zero. With an offset of 0.5, staleness 0 falls below the first boundary.
        boundaries = [bound + 0.5 for bound in STALENESS]
        description = "Changes by others between the reading and the arrival of a worker's change."
        self._staleness = Histogram("hogwild_staleness", description, boundaries, TAGS)

    def record(self, node: str, work: Throughput) -> None:
        """Record the work of a node between two heartbeats."""
        for name in ("updates", "bursts", "pushes", "bytes"):
            self._count(name, node, getattr(work, name))
        for worker, counts in work.delays.items():
            for delay, times in counts.items():
                for _ in range(times):
                    self._staleness.observe(delay, self._tags(worker))

    def restarted(self, node: str) -> None:
        """Count a restart of a node."""
        self._count("restarts", node, 1)

    def _count(self, name: str, node: str, more: float) -> None:
        if more > 0:
            self._counters[name].inc(more, self._tags(node))

    def _tags(self, node: str) -> dict[str, str]:
        return {"run": self.run, "node": node}
