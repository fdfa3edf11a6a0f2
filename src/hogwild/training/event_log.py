"""Log of the events of a run, which also passes them to the callbacks."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from hogwild.run import PASSING, Callback, Event


class EventLog:
    """Log of events. Callbacks also receive "progress" and "cluster" events, which the log does not keep.

    >>> heard = []
    >>> event_log = EventLog([heard.append])
    >>> event_log.emit("epoch", loss=0.5); event_log.emit("progress", updates=10)
    >>> [event["event"] for event in heard], [event["event"] for event in event_log.events]
    (['epoch', 'progress'], ['epoch'])
    """

    def __init__(self, callbacks: Iterable[Callback] = ()) -> None:
        self.events: list[Event] = []
        self._callbacks = tuple(callbacks)
        self._started = time.perf_counter()

    def emit(self, event: str, **what: Any) -> None:
        """Record an event, and pass it to all callbacks."""
        if event in PASSING and not self._callbacks:
            return
        record = {"event": event, "at": round(time.perf_counter() - self._started, 6), **what}
        if event not in PASSING:
            self.events.append(record)
        for callback in self._callbacks:
            callback(record)
