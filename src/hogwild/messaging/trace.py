"""What took how long in a run in real time, so that it can be played again in simulated time."""

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
    """What one participant notes: its bursts, and for each kind of event how long everything about it took."""

    starts: list[float] = field(default_factory=list)  # of this participant's lives
    bursts: list[tuple[float, int]] = field(default_factory=list)  # seconds, terms
    ways: Times = field(default_factory=dict)  # from when a message was sent until it came
    waking: Times = field(
        default_factory=dict
    )  # from when it had come, and nothing else was to do, until it was handled
    latencies: Times = field(default_factory=dict)  # from when a message was sent until it was handled
    handling: Times = field(default_factory=dict)  # of each event

    def heard(self, kind: str, sent: float, came: float, free: float, now: float) -> None:
        """A message was sent and came then; there was nothing else to do since ``free``, and it is handled now."""
        self.ways.setdefault(kind, []).append(came - sent)
        self.waking.setdefault(kind, []).append(now - max(came, free))
        self.latencies.setdefault(kind, []).append(now - sent)

    def handled(self, kind: str, seconds: float) -> None:
        """An event is dealt with."""
        self.handling.setdefault(kind, []).append(seconds)


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A diary for each participant of a run.

    >>> import tempfile
    >>> trace = Trace({"worker-0": NodeTrace(bursts=[(0.5, 8)], ways={"PullReply": [0.25]})})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     trace.save(Path(folder, "trace.json"))
    ...     Trace.load(Path(folder, "trace.json")).diaries["worker-0"].bursts
    [(0.5, 8)]
    """

    diaries: Mapping[str, NodeTrace]

    def save(self, path: str | Path) -> None:
        """Write it to a file, as JSON."""
        whole = {"format": FORMAT, "participants": {name: vars(diary) for name, diary in self.diaries.items()}}
        write_file(path, json.dumps(whole).encode())

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read what was saved."""
        try:
            whole = json.loads(Path(path).read_bytes())
            if whole["format"] != FORMAT:
                raise KeyError("format")
            return cls({name: _diary(noted) for name, noted in whole["participants"].items()})
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataError("this is no trace of a run", path=path, remedy="Trace.save writes them.") from error

    def summary(self) -> dict[str, Any]:
        """The figures of it: bursts of each worker, and latencies of each kind of message."""
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
