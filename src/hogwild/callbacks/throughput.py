"""Throughput of a run, the time that it has left, and the state of all nodes of a cluster."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hogwild.events import Event
from hogwild.files import format_size

if TYPE_CHECKING:
    from rich.table import Table


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


COLOURS = {"working": "green", "ready": "green", "silent": "bold yellow", "gone": "bold red"}
FIGURES = ("bursts", "updates/s", "staleness", "pushes/s", "bytes/s", "restarts", "last message")
SHORT = 8  # characters of a machine's name that are shown
WIDE = 104  # columns of a terminal that has room for all figures
# Figures that a narrower terminal omits. The state of a node that is silent is visible without them.
LEFT_OUT = ("bursts", "last message")
MOST = 40  # rows that are shown: first those of nodes in another state than "working", then the others by order

Row = Mapping[str, Any]


def table_of(rows: Iterable[Row], width: int = WIDE) -> Table:
    """Return a table with one row per node: machine, state, rates, staleness, restarts, seconds since its last message.

    >>> table_of([{"node": "worker-0", "ray_node": "4ac1f00d77", "state": "working", "bursts": 12}]).row_count
    1
    """
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    wide = width >= WIDE
    figures = [name for name in FIGURES if wide or name not in LEFT_OUT]
    table = Table(box=None, padding=(0, 2 if wide else 1, 0, 0), header_style="dim")
    for name in ("node", "ray node", "state"):
        table.add_column(name, no_wrap=True)
    for name in figures:
        table.add_column(name, justify="right", no_wrap=True)
    for row in _chosen(rows):
        state, said = Text(row["state"], COLOURS.get(row["state"], "yellow")), _figures(row)
        table.add_row(row["node"], row["ray_node"][:SHORT], state, *(said[name] for name in figures))
    if len(rows) > MOST:
        table.add_row(f"and {len(rows) - MOST} more")
    return table


def staleness_of(workers: Mapping[str, Mapping[str, float]]) -> Table:
    """Return a table with one row per worker: the distribution of the updates by others between its reads and writes.

    >>> staleness_of({"worker-0": {"mean": 1.3, "median": 0, "p95": 10, "most": 10, "count": 10}}).row_count
    1
    """
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("staleness of", no_wrap=True)
    for name in ("mean", "median", "p95", "most", "changes"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, figures in list(workers.items())[:MOST]:
        counts = (f"{figures[each]:,.0f}" for each in ("median", "p95", "most", "count"))
        table.add_row(name, f"{figures['mean']:.1f}", *counts)
    if len(workers) > MOST:
        table.add_row(f"and {len(workers) - MOST} more")
    return table


def lines_of(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the rows of the cluster table as plain lines.

    >>> list(lines_of([{"node": "worker-0", "ray_node": "4ac1f00d77", "state": "starting"}]))
    ['worker-0 on 4ac1f00d: starting']
    >>> row = {"state": "working", "updates_rate": 812.0, "bursts": 7, "silent": 0.2}
    >>> next(lines_of([{"node": "worker-0", "ray_node": "4ac1f00d77", **row}]))
    'worker-0 on 4ac1f00d: working, bursts 7, updates/s 812, last message 0.2 s ago'
    """
    for row in _chosen(list(rows)):
        said = [f"{name} {figure}" for name, figure in _figures(row).items() if figure]
        where = f" on {row['ray_node'][:SHORT]}" if row["ray_node"] else ""
        yield f"{row['node']}{where}: " + ", ".join([row["state"], *said])


def _chosen(rows: list[Row]) -> list[Row]:
    if len(rows) <= MOST:
        return rows
    kept = sorted(range(len(rows)), key=lambda index: (rows[index]["state"] == "working", index))[:MOST]
    return [rows[index] for index in sorted(kept)]


def _figures(row: Row) -> dict[str, str]:
    """Return the figures of a row as text; empty where there is no value to show."""
    stale, restarts, silent = row.get("staleness"), row.get("restarts", 0), row.get("silent", 0.0)
    return {
        "bursts": f"{row['bursts']:,}" if row.get("bursts") else "",
        "updates/s": _rate(row.get("updates_rate", 0.0)),
        "staleness": "" if stale is None else f"{stale:.1f}",
        "pushes/s": _rate(row.get("pushes_rate", 0.0)),
        "bytes/s": format_size(int(row["bytes_rate"])) if row.get("bytes_rate", 0.0) >= 1 else "",
        "restarts": str(restarts) if restarts else "",
        "last message": f"{silent:.1f} s ago" if row["ray_node"] and row["state"] not in ("starting", "gone") else "",
    }


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}" if rate else ""
