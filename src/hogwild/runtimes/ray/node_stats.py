"""How everybody stands: what each has done since it was last heard of, for tables and for metrics."""

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
    """One participant. Rates are those between its last two signs of life."""

    participant: str
    node: str = ""
    process: int = 0
    life: int = 0
    state: str = "starting"  # then preparing, ready, working; silent; gone
    bursts: int = 0
    updates_rate: float = 0.0  # a second
    staleness: float | None = None  # of its changes, on average
    pushes_rate: float = 0.0
    bytes_rate: float = 0.0
    restarts: int = 0
    silent: float = 0.0  # seconds since it was last heard of


@dataclass(frozen=True, slots=True)
class Throughput:
    """What somebody has done between two signs of life; ``delays`` are those that it noticed, of each worker."""

    seconds: float
    updates: int = 0
    bursts: int = 0
    pushes: int = 0
    bytes: int = 0
    delays: Mapping[str, Counter[int]] = field(default_factory=dict)


def done(before: Heartbeat, after: Heartbeat, seconds: float) -> Throughput:
    """What lies between two pulses of one life.

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
    """Keeps what was last known of everybody."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, float, Heartbeat]] = {}
        self._rates: dict[str, Throughput] = {}
        self._staleness: dict[str, float] = {}

    def note(self, place: ActorRecord) -> Throughput | None:
        """Somebody was heard of: what it has done since the last time; None if it does not take part yet."""
        pulse, name, began = place.pulse, place.name, place.since
        if began is None:
            return None
        life, when, before = self._last.get(name, (place.life, began, Heartbeat()))
        if life != place.life:  # a server goes on counting delays where it was
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
        """Everybody in the order of the cast, as plain values."""
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
