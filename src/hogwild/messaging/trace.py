"""Traces: durations measured in a run in real time, which a simulator can replay."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.errors import DataError
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

    def heard(self, kind: str, sent: float, came: float, free: float, now: float) -> None:
        """Record a message that the node begins to handle.

        Parameters
        ----------
        kind : str
            Kind of the message.
        sent, came : float
            Times at which the message was sent and at which it arrived, in seconds.
        free : float
            Time since which the node has had nothing else to handle, in seconds.
        now : float
            Time at which the node begins to handle the message, in seconds.
        """
        self.ways.setdefault(kind, []).append(came - sent)
        self.waking.setdefault(kind, []).append(now - max(came, free))
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
    ...     Trace.load(Path(folder, "trace.json")).diaries["worker-0"].bursts
    [(0.5, 8)]
    """

    diaries: Mapping[str, NodeTrace]

    def save(self, path: str | Path) -> None:
        """Write the trace to a file, as JSON."""
        whole = {"format": FORMAT, "participants": {name: vars(diary) for name, diary in self.diaries.items()}}
        write_file(path, json.dumps(whole).encode())

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read a trace that ``save`` wrote. Raise :class:`DataError` for any other file."""
        try:
            whole = json.loads(Path(path).read_bytes())
            if whole["format"] != FORMAT:
                raise KeyError("format")
            return cls({name: _diary(noted) for name, noted in whole["participants"].items()})
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataError("this is no trace of a run", path=path, remedy="Trace.save writes them.") from error

    def summary(self) -> dict[str, Any]:
        """Return statistics of the trace: bursts of each worker, and latencies of each kind of message, in seconds."""
        latencies: Times = {}
        for diary in self.diaries.values():
            for kind, seconds in diary.latencies.items():
                latencies.setdefault(kind, []).extend(seconds)
        return {
            "bursts": {
                name: {"terms": sum(terms for _, terms in diary.bursts), **_figures([s for s, _ in diary.bursts])}
                for name, diary in sorted(self.diaries.items()) if diary.bursts
            },
            "latencies": {kind: _figures(seconds) for kind, seconds in sorted(latencies.items())},
        }  # fmt: skip


def _diary(noted: dict[str, Any]) -> NodeTrace:
    times = [
        {str(kind): [float(second) for second in seconds] for kind, seconds in noted[name].items()}
        for name in ("ways", "waking", "latencies", "handling")
    ]
    bursts = [(float(seconds), int(terms)) for seconds, terms in noted["bursts"]]
    return NodeTrace([float(start) for start in noted["starts"]], bursts, *times)


def _figures(seconds: list[float]) -> dict[str, float]:
    median, late = np.quantile(seconds, [0.5, 0.95])
    return {"count": len(seconds), "mean": float(np.mean(seconds)), "median": float(median), "p95": float(late)}
