"""How fast a run goes, and how long it will still take."""

from __future__ import annotations

import time

from hogwild.run import Event

SPAN = 0.05  # seconds over which a rate is worth telling: some events come in bursts


class Rates:
    """Hears of progress and of epochs, and puts into words how fast they come.

    >>> rates = Rates()
    >>> rates.progress({"updates": 10, "fraction": 0.5, "workers": [1200.0, 873.2]})
    >>> rates.words, rates.left
    ('1.2k + 873 samples/s', None)
    """

    def __init__(self) -> None:
        self.words = ""  # nothing yet
        self._last = (0.0, 0)  # when, and how many updates there were
        self._simulated = False
        self._first: tuple[float, float] | None = None  # when, and how much of the budget was gone
        self._now = (0.0, 0.0)

    def started(self, event: Event) -> None:
        """A run has begun."""
        self._simulated = str(event.get("runtime", "")).startswith("Simulator")

    def progress(self, event: Event) -> None:
        """So much is done."""
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
        """An epoch is over: what it took in all is the best that is known of short ones."""
        if self._simulated:  # where they are no seconds of this clock
            return
        if event["seconds"] and "samples/s" not in self.words:
            self.words = f"{event['updates'] / event['seconds']:,.0f} rows/s"
        self._last = 0.0, 0

    @property
    def left(self) -> float | None:
        """In how many seconds the budget will be spent, if that goes on as it has; None where nobody knows."""
        if self._first is None:
            return None
        (began, before), (now, spent) = self._first, self._now
        if spent <= before or now - began <= SPAN:
            return None
        return max(0.0, (now - began) * (1 - spent) / (spent - before) - (time.perf_counter() - now))


def short(rate: float) -> str:
    """A rate in few characters, for a line that has one for each worker.

    >>> short(873.2), short(12_345.0), short(4.2e6)
    ('873', '12.3k', '4.2M')
    """
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if rate >= size:
            return f"{rate / size:.1f}{unit}"
    return f"{rate:.0f}"
