"""Events of a run: their names, their fields and their senders, and the log that passes them to callbacks.

An event is a dictionary whose values are of types that JSON has. The keys of a histogram are integers, which JSON
writes as text and :func:`event_from_json` restores. ``EVENTS`` lists every kind of event. A new kind of event is one
entry there, and one line where it is emitted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from numpy.typing import NDArray

Parameters = tuple[NDArray[Any], ...]

Record = dict[str, Any]
"""Record of an epoch, with its number, its loss and other figures; its values are of types that JSON has."""


class Event(dict[str, Any]):
    """Event of a run, such as ``{"event": "epoch", "epoch": 1, "loss": 0.3, ...}``.

    Every event has ``event``, its name, and ``at``, the seconds since the start of the run.
    """

    __slots__ = ("_read",)

    def __init__(self, fields: Mapping[str, Any], read: Callable[[], Parameters] | None = None) -> None:
        super().__init__(fields)
        self._read = read

    @property
    def parameters(self) -> Parameters:
        """The parameters that an event "epoch" or "result" describes, as arrays of the caller's own.

        They are those of the model: averaged, if the run averages its iterates by then. Read them in the callback,
        because the run changes them afterwards.

        Raises
        ------
        LookupError
            If the event has none: another kind of event, or a run on a Ray cluster, whose parameters are elsewhere.

        Examples
        --------
        >>> Event({"event": "compiled", "seconds": 0.1}).parameters
        Traceback (most recent call last):
            ...
        LookupError: The event 'compiled' has no parameters here.
        """
        if self._read is None:
            raise LookupError(f"The event {self.get('event')!r} has no parameters here.")
        return self._read()


def event_from_json(line: str) -> Event:
    """Return an event from a line of JSON. Its histograms have integers for keys again.

    >>> event_from_json('{"event": "staleness", "histogram": {"0": 7, "12": 1}}')["histogram"]
    {0: 7, 12: 1}
    """
    return Event(json.loads(line, object_hook=_with_integer_keys))


def _with_integer_keys(found: dict[str, Any]) -> dict[str, Any]:
    histogram = found.get("histogram")
    if isinstance(histogram, dict):
        found["histogram"] = {int(key): count for key, count in histogram.items()}
    return found


class Callback(Protocol):
    """Callable that receives each event of a run when it happens."""

    def __call__(self, event: Event) -> None: ...


@dataclass(frozen=True, slots=True)
class EventKind:
    """Kind of event: its sender, the fields that it always has, and fields that it may have.

    With ``open``, an event has further fields, which depend on the problem or the runtime, such as its metrics.
    """

    sender: str
    fields: Mapping[str, str] = field(default_factory=dict)
    optional: Mapping[str, str] = field(default_factory=dict)
    open: bool = False
    passing: bool = False  # about the present state of a run: callbacks receive it, but ``Run.events`` does not keep it


_RECORD = {
    "epoch": "completed epochs",
    "updates": "updates so far: rows or samples",
    "seconds": "seconds of training so far",
    "loss": "mean loss over the training data, or over the samples since the epoch began, before their updates",
}
_METRICS = {
    "objective": "loss and penalty",
    "step": "step size",
    "steps": "steps of the optimiser so far",
    "workers_used": "workers in one memory that made updates in this epoch",
    "sampled_rows": "rows of the sample of large training data that loss and scores were evaluated on",
    "test_loss": "mean loss over the held-out data",
}
_MESSAGE = {"message": "one sentence for people"}
_SECONDS = {"seconds": "seconds since the workers began, simulated ones in a simulation"}
_NODE = {"node": "name of the node, such as 'worker-0'"}
_ACTOR = _SECONDS | _NODE | {"incarnation": "number of the node's restarts before"}

EVENTS: dict[str, EventKind] = {
    # Every run
    "started": EventKind(
        "driver",
        {
            "rule": "rule or optimiser", "schedule": "schedule", "average": "average of the iterates",
            "seed": "random seed", "strategy": "strategy", "workers": "number of workers", "runtime": "runtime",
            "budget": "budget",
        },
        {"time": "Unix time of the start", "problem": "kind of problem", "held_out": "fingerprint of held-out data"},
        open=True,
    ),
    "step chosen": EventKind(
        "step search", {"step": "step size", "trials": "step size and loss of each trial"}
    ),
    "training": EventKind("driver", {}, {"loss": "loss before the first update", "workers": "number of workers"}),
    "progress": EventKind(
        "training loop, supervisor or coordinator",
        {"updates": _RECORD["updates"], "seconds": _RECORD["seconds"], "fraction": "share of the budget that is spent"},
        {"epoch": _RECORD["epoch"], "terms": "terms so far", "workers": "samples per second of each worker"},
        passing=True,
    ),
    "epoch": EventKind("training loop, supervisor or coordinator", _RECORD, _METRICS, open=True),
    "checkpoint": EventKind(
        "checkpoint store", {"epoch": _RECORD["epoch"]}, {"chunk": "chunks of the present epoch that are done"}
    ),
    "resumed": EventKind(
        "checkpoint store", {"epoch": _RECORD["epoch"]},
        {"chunk": "chunks of the present epoch that are done", "updates": _RECORD["updates"]} | _MESSAGE,
    ),
    "result": EventKind(
        "training loop, supervisor or coordinator",
        {"stop_reason": "limit that ended the run", "epoch": _RECORD["epoch"]}, _RECORD | _METRICS, open=True,
    ),
    # Threads
    "compiled": EventKind("threads", {"seconds": "seconds of compilation"}),
    "workers": EventKind(
        "threads", {"workers": "workers that are used", "cores": "cores that this process may use"} | _MESSAGE
    ),
    "replicas": EventKind("threads", {}, open=True),
    "loss rose": EventKind(
        "driver",
        {"start": "loss before the first update, held-out if there is such data", "end": "that loss at the end"}
        | _MESSAGE,
    ),
    "penalty chosen": EventKind(
        "search for penalties",
        {
            "penalties": "strengths of the penalties by name", "path": "pairs of a multiple and a held-out loss",
            "seconds": "seconds of training of all trials",
        },
    ),
    "exchanges": EventKind(
        "driver",
        {
            "updates": "updates of a worker between two exchanges", "update_seconds": "seconds of an update",
            "exchange_seconds": "seconds of an exchange",
        }
        | _MESSAGE,
    ),
    "diverged": EventKind(
        "divergence guard", {"epoch": _RECORD["epoch"], "scale": "factor of all step sizes from now on"} | _MESSAGE
    ),
    "conflicts": EventKind("conflict monitor", {}, open=True),
    # Processes
    "locked steps": EventKind("processes", _MESSAGE),
    "optimiser state": EventKind("processes", _MESSAGE),
    "worker crashed": EventKind("supervisor", {"worker": "name of the process"} | _MESSAGE),
    # Message passing
    "ready": EventKind(
        "coordinator", {"workers": "number of workers", "servers": "number of parameter servers"} | _SECONDS
    ),
    "topology": EventKind("coordinator", _SECONDS, open=True),
    "lost": EventKind("coordinator", _SECONDS | _NODE),
    "joined": EventKind("coordinator", _SECONDS | _NODE),
    "staleness": EventKind(
        "run report",
        {
            "mean": "mean staleness", "median": "median", "p95": "95th percentile", "most": "maximum",
            "count": "number of updates", "histogram": "updates by staleness", "workers": "the same of each worker",
            "shards": "the same of each server", "most_clocks_behind": "largest lag of a worker, in clocks",
        },
    ),
    "traffic": EventKind(
        "run report",
        {
            "messages": "messages", "bytes": "bytes", "receipts": "acknowledgements", "lost": "messages lost",
            "resent": "messages sent again", "kinds": "messages and bytes of each kind",
        },
    ),
    "idle": EventKind(
        "run report",
        {"idle_share": "idle share of the workers' time", "workers": "idle seconds, idle share, busy seconds of each"},
        open=True,
    ),
    "trace": EventKind("run report", {}, open=True),
    "unfinished threads": EventKind("local runtime", _SECONDS | {"nodes": "nodes whose threads did not end in time"}),
    # Ray
    "placed": EventKind(
        "Ray runtime",
        _ACTOR | {"ray_node": "Ray node", "process": "process id", "run": "name of the run in Ray's metrics"},
    ),
    "unplaced": EventKind("Ray runtime", _SECONDS | _NODE | {"reason": "resources or data that are missing"}),
    "crashed": EventKind(
        "Ray runtime", _ACTOR | {"reason": "why the node is taken for crashed", "restarts": "whether it is restarted"}
    ),
    "cluster": EventKind("Ray runtime", _SECONDS | {"nodes": "state of every node"}, passing=True),
}  # fmt: skip


class EventLog:
    """Log of the events of a run, which also passes them to the callbacks.

    >>> received = []
    >>> event_log = EventLog([received.append])
    >>> event_log.emit("compiled", seconds=0.5)
    >>> event_log.emit("progress", updates=10, seconds=0.1, fraction=0.5)
    >>> [event["event"] for event in received], [event["event"] for event in event_log.events]
    (['compiled', 'progress'], ['compiled'])
    """

    def __init__(self, callbacks: Iterable[Callback] = ()) -> None:
        self.events: list[Event] = []
        self._callbacks = tuple(callbacks)
        self._started = time.perf_counter()

    def emit(self, event: str, parameters: Callable[[], Parameters] | None = None, /, **fields: Any) -> None:
        """Record an event, and pass it to all callbacks, which may read the parameters that it describes."""
        kind = EVENTS[event]
        if kind.passing and not self._callbacks:
            return
        check_fields(event, fields)
        record = Event({"event": event, "at": round(time.perf_counter() - self._started, 6), **fields}, parameters)
        if not kind.passing:
            # The log keeps no parameters: they would hold the memory of every epoch.
            self.events.append(Event(record))
        for callback in self._callbacks:
            callback(record)


def check_fields(event: str, fields: Iterable[str]) -> None:
    """Check the fields of an event against its kind.

    Raises
    ------
    TypeError
        If a field is missing or unknown.

    Examples
    --------
    >>> check_fields("lost", {"node": "worker-0"})
    Traceback (most recent call last):
        ...
    TypeError: The event 'lost' lacks the fields ['seconds'].
    """
    kind, given = EVENTS[event], set(fields) - {"at"}
    missing = sorted(kind.fields.keys() - given)
    if missing:
        raise TypeError(f"The event {event!r} lacks the fields {missing}.")
    unknown = sorted(given - kind.fields.keys() - kind.optional.keys())
    if unknown and not kind.open:
        raise TypeError(f"The event {event!r} has the unknown fields {unknown}.")
