"""Progress bar of a run: epoch, throughput, loss and time left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hogwild.callbacks.throughput import Rates, lines_of, table_of
from hogwild.events import Event

if TYPE_CHECKING:
    from rich.console import Console

LINES = 30.0  # seconds between two reports where there is no terminal


class Progress:
    """Progress bar with epoch, rows/s (of each worker process, if there are any), loss and time left.

    On a cluster a table of all nodes is shown below the bar. Without a terminal, as in the log of a pod, the callback
    prints a plain line every 30 seconds; on a cluster, a line for each node.

    Parameters
    ----------
    console : rich.console.Console, optional
        Console to draw on; by default standard error.
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
        self._rates, self._figures, self._percent, self._nodes = Rates(), "", "", False
        self._bar.start()

    def __call__(self, event: Event) -> None:
        handle = getattr(self, "_on_" + event["event"].replace(" ", "_"), None)
        if handle:
            handle(event)

    def _on_started(self, event: Event) -> None:
        waits = "Starting workers" if event.get("problem") == "module" else "Compiling"
        self._bar.update(self._task, description=waits)
        self._rates.started(event)

    def _on_compiled(self, event: Event) -> None:
        self._bar.update(self._task, description="Choosing the step")

    def _on_progress(self, event: Event) -> None:
        self._rates.progress(event)
        self._show(event["fraction"])

    def _on_epoch(self, event: Event) -> None:
        self._figures = f"epoch {event['epoch']}  loss {event['loss']:.5f}"
        if "test_loss" in event:
            self._figures += f"  held out {event['test_loss']:.5f}"
        self._rates.epoch(event)
        self._show(None)

    def _on_cluster(self, event: Event) -> None:
        self._nodes = True
        if not self._bar.disable:
            if not self._rates.words and not self._figures:
                self._bar.update(self._task, description="Starting processes")
            self._bar.below = table_of(event["nodes"], self._bar.console.width)
        elif time.monotonic() - self._said >= LINES:
            self._said = time.monotonic()
            for line in lines_of(event["nodes"]):
                self._bar.console.print(line, soft_wrap=True)

    def _show(self, fraction: float | None) -> None:
        update: dict[str, Any] = {} if fraction is None else {"completed": fraction}
        figures = "  ".join(part for part in (self._figures, self._rates.words) if part)
        self._bar.update(self._task, description="Training", figures=figures, **update)
        if fraction is not None:
            self._percent = f"{fraction:.0%}"
        if self._bar.disable and not self._nodes and time.monotonic() - self._said >= LINES:
            self._said, left = time.monotonic(), self._rates.left
            remaining = "" if left is None else f"{left:,.0f} s left"
            words = "  ".join(part for part in (self._percent, figures, remaining) if part)
            self._bar.console.print(f"Training: {words}", soft_wrap=True, highlight=False)

    def close(self) -> None:
        """Remove the bar."""
        self._bar.stop()


def _bar() -> Any:
    """Return a subclass of rich's progress bar that can show another object below the bar."""
    from rich.progress import Progress

    class Bar(Progress):
        below: Any = None

        def get_renderables(self) -> Iterator[Any]:
            yield from super().get_renderables()
            if self.below is not None:
                yield self.below

    return Bar
