"""A progress bar: how far, how fast, how good, how long still."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hogwild.callbacks.standings import lines_of, table_of
from hogwild.run import Event

if TYPE_CHECKING:
    from rich.console import Console

LINES = 30.0  # seconds between two tellings of how a cluster stands, where there is no terminal
SPAN = 0.05  # seconds over which a rate is worth telling: some events come in bursts


class Progress:
    """Draws a bar with epoch, rows/s (of each worker process, if there are any), loss and time left on a terminal.

    On a cluster there is a table of everybody below it. Where there is no terminal it is silent, but for a cluster,
    which is told of in plain lines now and then.
    """

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

        console = console or Console(stderr=True)
        self._bar = _bar()(
            TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal,
        )  # fmt: skip
        self._said = time.monotonic()
        self._task = self._bar.add_task("Starting", total=1.0, figures="")
        self._rate, self._figures, self._last = "", "", (0.0, 0)
        self._simulated = False
        self._bar.start()

    def __call__(self, event: Event) -> None:
        handle = getattr(self, "_on_" + event["event"].replace(" ", "_"), None)
        if handle:
            handle(event)

    def _on_started(self, event: Event) -> None:
        waits = "Starting workers" if event.get("problem") == "module" else "Compiling"
        self._bar.update(self._task, description=waits)
        self._simulated = str(event.get("runtime", "")).startswith("Simulator")

    def _on_compiled(self, event: Event) -> None:
        self._bar.update(self._task, description="Choosing the step")

    def _on_progress(self, event: Event) -> None:
        now, (then, updates) = time.perf_counter(), self._last
        if then and now - then > SPAN and event["updates"] > updates:
            self._rate = f"{(event['updates'] - updates) / (now - then):,.0f} rows/s"
        if not then or now - then > SPAN:
            self._last = now, event["updates"]
        if "workers" in event:
            self._rate = " + ".join(_short(rate) for rate in event["workers"]) + " samples/s"
        self._show(event["fraction"])

    def _on_epoch(self, event: Event) -> None:
        self._figures = f"epoch {event['epoch']}  loss {event['loss']:.5f}"
        if "test_loss" in event:
            self._figures += f"  held out {event['test_loss']:.5f}"
        if not self._simulated:  # where they are no seconds of this clock
            if event["seconds"] and "samples/s" not in self._rate:
                self._rate = f"{event['updates'] / event['seconds']:,.0f} rows/s"
            self._last = 0.0, 0
        self._show(None)

    def _on_cluster(self, event: Event) -> None:
        if not self._bar.disable:
            if not self._rate and not self._figures:
                self._bar.update(self._task, description="Starting processes")
            self._bar.below = table_of(event["participants"], self._bar.console.width)
        elif time.monotonic() - self._said >= LINES:
            self._said = time.monotonic()
            for line in lines_of(event["participants"]):
                self._bar.console.print(line, soft_wrap=True)

    def _show(self, fraction: float | None) -> None:
        update: dict[str, Any] = {} if fraction is None else {"completed": fraction}
        figures = "  ".join(part for part in (self._figures, self._rate) if part)
        self._bar.update(self._task, description="Training", figures=figures, **update)

    def close(self) -> None:
        """Take the bar away."""
        self._bar.stop()


def _bar() -> Any:
    """A bar of rich's that may have something below it."""
    from rich.progress import Progress

    class Bar(Progress):
        below: Any = None

        def get_renderables(self) -> Iterator[Any]:
            yield from super().get_renderables()
            if self.below is not None:
                yield self.below

    return Bar


def _short(rate: float) -> str:
    """A rate in few characters, for a line that has one for each worker.

    >>> _short(873.2), _short(12_345.0), _short(4.2e6)
    ('873', '12.3k', '4.2M')
    """
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if rate >= size:
            return f"{rate / size:.1f}{unit}"
    return f"{rate:.0f}"
