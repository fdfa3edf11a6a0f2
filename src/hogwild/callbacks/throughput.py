"""Throughput of a run, and the time that it has left."""

from __future__ import annotations

import time

from hogwild.run import Event

# Least interval in seconds over which a rate is computed. A rate over less is unreliable, because events can arrive in
# bursts.
SPAN = 0.05


class Rates:
    """Throughput of a run in words, computed from its "progress" and "epoch" events.

    >>> rates = Rates()
    >>> rates.progress({"updates": 10, "fraction": 0.5, "workers": [1200.0, 873.2]})
    >>> rates.words, rates.left
    ('1.2k + 873 samples/s', None)
    """

    def __init__(self) -> None:
        self.words = ""  # empty until a rate is known
        self._last = (0.0, 0)  # time of the last rate in seconds, and the updates at that time
        self._simulated = False
        # Time of the first event in seconds, and the share of the budget spent at that time
        self._first: tuple[float, float] | None = None
        self._now = (0.0, 0.0)

    def started(self, event: Event) -> None:
        """Note the runtime when a run starts."""
        self._simulated = str(event.get("runtime", "")).startswith("Simulator")

    def progress(self, event: Event) -> None:
        """Update the throughput from a "progress" event."""
        now, (then, updates) = time.perf_counter(), self._last
        if then and now - then > SPAN and event["updates"] > updates:
            self.words = f"{(event['updates'] - updates) / (now - then):,.0f} rows/s"
        if not then or now - then > SPAN:
            self._last = now, event["updates"]
        if "workers" in event:
            self.words = " + ".join(short(rate) for rate in event["workers"]) + " samples/s"
        self._now = now, event["fraction"]
        self._first = self._first or self._now

    def epoch(self, event: Event) -> None:
        """Update the throughput from an "epoch" event: for short epochs, the total rate is the best estimate."""
        if self._simulated:  # a simulation's seconds are not those of this clock
            return
        if event["seconds"] and "samples/s" not in self.words:
            self.words = f"{event['updates'] / event['seconds']:,.0f} rows/s"
        self._last = 0.0, 0

    @property
    def left(self) -> float | None:
        """The seconds until the budget is spent, if the run continues at its mean speed; None if not known."""
        if self._first is None:
            return None
        (began, before), (now, spent) = self._first, self._now
        if spent <= before or now - began <= SPAN:
            return None
        return max(0.0, (now - began) * (1 - spent) / (spent - before) - (time.perf_counter() - now))


def short(rate: float) -> str:
    """Return a rate in short form, for a line that has one for each worker.

    >>> short(873.2), short(12_345.0), short(4.2e6)
    ('873', '12.3k', '4.2M')
    """
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if rate >= size:
            return f"{rate / size:.1f}{unit}"
    return f"{rate:.0f}"
