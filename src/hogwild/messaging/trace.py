"""Traces of message-passing runs, and the replay of their durations."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.errors import DataError, ParameterError
from hogwild.files import write_file

FORMAT = "hogwild trace 1"
Times = dict[str, list[float]]


@dataclass(eq=False)
class NodeTrace:
    """Trace of one node: the durations of its bursts, and for each kind of event its transit and handling times."""

    starts: list[float] = field(default_factory=list)  # Times at which incarnations of the node started, in seconds.
    bursts: list[tuple[float, int]] = field(default_factory=list)  # Seconds and terms of each burst.
    ways: Times = field(default_factory=dict)  # Seconds from the sending of a message to its arrival.
    # Seconds from the moment when a message had arrived and the node was idle to the handling of the message.
    waking: Times = field(default_factory=dict)
    latencies: Times = field(default_factory=dict)  # Seconds from the sending of a message to its handling.
    handling: Times = field(default_factory=dict)  # Seconds that the handling of each event took.
    evaluations: list[float] = field(default_factory=list)  # Seconds from each request of an evaluation to its result.

    def received(self, kind: str, sent: float, arrived: float, free: float, now: float) -> None:
        """Record a message that the node begins to handle.

        Parameters
        ----------
        kind : str
            Kind of the message.
        sent, arrived : float
            Times at which the message was sent and at which it arrived, in seconds.
        free : float
            Time since which the node has had nothing else to handle, in seconds.
        now : float
            Time at which the node begins to handle the message, in seconds.
        """
        self.ways.setdefault(kind, []).append(arrived - sent)
        self.waking.setdefault(kind, []).append(now - max(arrived, free))
        self.latencies.setdefault(kind, []).append(now - sent)

    def handled(self, kind: str, seconds: float) -> None:
        """Record that the node has handled an event, and the seconds that this took."""
        self.handling.setdefault(kind, []).append(seconds)


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Trace of a run: one :class:`NodeTrace` for each node.

    >>> import tempfile
    >>> trace = Trace({"worker-0": NodeTrace(bursts=[(0.5, 8)], ways={"PullReply": [0.25]})})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     trace.save(Path(folder, "trace.json"))
    ...     Trace.load(Path(folder, "trace.json")).nodes["worker-0"].bursts
    [(0.5, 8)]
    """

    nodes: Mapping[str, NodeTrace]
    interval: int | None = None  # Updates between two exchanges, if the run chose them.

    def save(self, path: str | Path) -> None:
        """Write the trace to a file, as JSON."""
        nodes = {name: vars(node) for name, node in self.nodes.items()}
        whole = {"format": FORMAT, "interval": self.interval, "participants": nodes}
        write_file(path, json.dumps(whole).encode())

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read a trace that ``save`` wrote. Raise :class:`DataError` for any other file."""
        try:
            whole = json.loads(Path(path).read_bytes())
            if whole["format"] != FORMAT:
                raise KeyError("format")
            nodes = {name: _node_trace(entry) for name, entry in whole["participants"].items()}
            interval = whole.get("interval")
            return cls(nodes, None if interval is None else int(interval))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise DataError("this is no trace of a run", path=path, remedy="Trace.save writes them.") from error

    def summary(self) -> dict[str, Any]:
        """Return statistics of the trace: bursts of each worker, and latencies of each kind of message, in seconds."""
        latencies: Times = {}
        for node in self.nodes.values():
            for kind, seconds in node.latencies.items():
                latencies.setdefault(kind, []).extend(seconds)
        return {
            "bursts": {
                name: {"terms": sum(terms for _, terms in node.bursts), **_figures([s for s, _ in node.bursts])}
                for name, node in sorted(self.nodes.items()) if node.bursts
            },
            "latencies": {kind: _figures(seconds) for kind, seconds in sorted(latencies.items())},
        }  # fmt: skip


def _node_trace(entry: dict[str, Any]) -> NodeTrace:
    ways, waking, latencies, handling = (
        {str(kind): _durations(seconds) for kind, seconds in entry[name].items()}
        for name in ("ways", "waking", "latencies", "handling")
    )
    bursts = [(_durations([seconds])[0], int(terms)) for seconds, terms in entry["bursts"]]
    evaluations = _durations(entry.get("evaluations", ()))
    starts = _durations(entry["starts"])
    return NodeTrace(starts, bursts, ways, waking, latencies, handling, evaluations)


def _durations(seconds: Iterable[float]) -> list[float]:
    """Return durations as numbers; raise ``ValueError`` for one that is not finite.

    Between two machines, whose clocks differ, a duration may be negative.
    """
    found = [float(each) for each in seconds]
    if not np.isfinite(found).all():
        raise ValueError("a duration is not finite")
    return found


def _figures(seconds: list[float]) -> dict[str, float]:
    median, late = np.quantile(seconds, [0.5, 0.95])
    return {"count": len(seconds), "mean": float(np.mean(seconds)), "median": float(median), "p95": float(late)}


class TraceReplay:
    """Replays the durations of a trace.

    Each node gets its recorded durations in their order, and from the beginning again after the last. If a node has no
    record of a kind of event, the records of all nodes with the same role are used. Without those, the duration is 0.
    """

    def __init__(self, trace: Trace) -> None:
        self._nodes = trace.nodes
        self._turns: dict[tuple[str, str, str], int] = defaultdict(int)
        self._others: dict[tuple[str, str, str], Sequence[float]] = {}

    def burst(self, worker: str, terms: int) -> float:
        """Return the seconds of a worker's next burst: the next recorded duration, scaled to this number of terms."""
        node = self._nodes.get(worker)
        if node is None or not node.bursts:
            raise ParameterError(
                f"The trace has no bursts of {worker}: replay it with the strategy it was recorded with."
            )
        seconds, recorded = node.bursts[self._turn("burst", worker, "", len(node.bursts))]
        return seconds * terms / max(1, recorded)

    def way(self, receiver: str, kind: str) -> float:
        """Return the seconds between sending and arrival of the receiver's next message of a kind."""
        return self._next("ways", receiver, kind)

    def handling(self, name: str, kind: str) -> float:
        """Return the seconds that an idle node takes to wake up for an event and to react."""
        return self._next("waking", name, kind) + self._next("handling", name, kind)

    def evaluation(self, name: str) -> float:
        """Return the seconds of a node's next evaluation."""
        node = self._nodes.get(name)
        times = node.evaluations if node is not None else []
        return times[self._turn("evaluation", name, "", len(times))] if times else 0.0

    def longest(self) -> tuple[float, float]:
        """Return the seconds of the longest transmission, and of the longest wake-up and reaction together."""
        nodes = self._nodes.values()
        ways = [max(times) for node in nodes for times in node.ways.values()]
        waking = [max(times) for node in nodes for times in node.waking.values()]
        handling = [max(times) for node in nodes for times in node.handling.values()]
        return max(ways, default=0.0), max(waking, default=0.0) + max(handling, default=0.0)

    def _next(self, what: str, name: str, kind: str) -> float:
        node = self._nodes.get(name)
        times = getattr(node, what).get(kind) if node is not None else None
        times = times or self._of_others(what, name, kind)
        return times[self._turn(what, name, kind, len(times))] if times else 0.0

    def _of_others(self, what: str, name: str, kind: str) -> Sequence[float]:
        """Return the recorded durations of all nodes with the same role."""
        role = name.partition("-")[0]
        key = (what, role, kind)
        if key not in self._others:
            alike = (node for other, node in sorted(self._nodes.items()) if other.partition("-")[0] == role)
            self._others[key] = list(chain.from_iterable(getattr(node, what).get(kind, ()) for node in alike))
        return self._others[key]

    def _turn(self, what: str, name: str, kind: str, length: int) -> int:
        """Return the index of the next record, modulo the number of records."""
        turn = self._turns[what, name, kind]
        self._turns[what, name, kind] = turn + 1
        return turn % length
