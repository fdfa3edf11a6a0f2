"""A run to watch: its curve as it grows, how fast it is, how stale, and how long still."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from hogwild.callbacks.cluster_table import staleness_of, table_of
from hogwild.callbacks.loss_curves import curves
from hogwild.callbacks.throughput import Rates
from hogwild.run import Event

if TYPE_CHECKING:
    from rich.console import Console, Group, RenderableType
    from rich.text import Text

OFTEN = 4  # times a second it is drawn
TALL, LOW = 11, 4  # lines of the curve, if there is room for them
WIDE = 110  # letters, however wide the terminal
AROUND = 6  # lines besides the curve and the table
LOSS, HELD_OUT = "green", "yellow"


class Live:
    """Draws the loss (and that of held-out data) over the epochs, rows/s and time left while a run goes on.

    On a cluster there is everybody's rate and staleness below it; after any run by messages, how stale what each worker
    trained on was. The last picture stays on the screen. Where there is no terminal it is silent.
    """

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = console or Console(stderr=True)
        self._title, self._phase, self._fraction, self._over = "", "Starting", 0.0, False
        self._records: list[Event] = []
        self._rates = Rates()
        self._below: Any = None
        self._lines = 0  # of what is below
        self._screen = Live(
            get_renderable=self.picture, console=self._console, refresh_per_second=OFTEN, transient=False
        )
        if self._console.is_terminal:
            self._screen.start()

    def __call__(self, event: Event) -> None:
        handle = getattr(self, "_on_" + event["event"].replace(" ", "_"), None)
        if handle:
            handle(event)

    def _on_started(self, event: Event) -> None:
        names = ("problem", "loss", "rule", "strategy", "runtime")
        self._title = "  ".join(str(event[name]) for name in names if event.get(name))
        self._phase = "Starting workers" if event.get("problem") == "module" else "Compiling"
        self._rates.started(event)

    def _on_compiled(self, event: Event) -> None:
        self._phase = "Choosing the step"

    def _on_training(self, event: Event) -> None:
        self._phase = "Training"

    def _on_progress(self, event: Event) -> None:
        self._phase, self._fraction = "Training", event["fraction"]
        self._rates.progress(event)

    def _on_epoch(self, event: Event) -> None:
        self._records.append(event)
        self._rates.epoch(event)

    def _on_diverged(self, event: Event) -> None:
        self._phase = "Going back, with a smaller step"

    def _on_cluster(self, event: Event) -> None:
        self._below = table_of(event["participants"], self._console.width)
        self._lines = self._below.row_count + 1

    def _on_staleness(self, event: Event) -> None:
        if event["workers"]:
            self._below = staleness_of(event["workers"])
            self._lines = self._below.row_count + 1

    def _on_result(self, event: Event) -> None:
        self._phase, self._over = f"Done, by {event['stop_reason']}", True

    def picture(self) -> Group:
        """What there is to see now."""
        from rich.console import Group
        from rich.text import Text

        parts: list[RenderableType] = [Text(self._title, "bold", no_wrap=True, overflow="ellipsis")]
        if self._records:
            parts += [self._curve(), self._figures()]
        parts.append(self._course())
        return Group(*parts, *([] if self._below is None else [self._below]))

    def _curve(self) -> Text:
        records = list(self._records)  # events go on meanwhile
        height = max(LOW, min(TALL, self._console.height - AROUND - self._lines))
        lines = [([record["loss"] for record in records], LOSS),
                 ([record.get("test_loss") for record in records], HELD_OUT)]  # fmt: skip
        old = "utf" not in self._console.encoding.lower()
        return curves(
            [record["epoch"] for record in records], lines, min(WIDE, self._console.width - 1), height, ascii_only=old
        )

    def _figures(self) -> Text:
        from rich.text import Text

        records = list(self._records)
        words = Text.assemble(f"epoch {records[-1]['epoch']}  ", (f"loss {records[-1]['loss']:.5g}", LOSS))
        held_out = [record for record in records if record.get("test_loss") is not None]
        if held_out:
            least = min(held_out, key=lambda record: float(record["test_loss"]))
            words.append(f"  held out {held_out[-1]['test_loss']:.5g}", HELD_OUT)
            words.append(f" (least {least['test_loss']:.5g}, epoch {least['epoch']})", "dim")
        return words

    def _course(self) -> RenderableType:
        """What is going on, how much of it is done, how fast it is, and how long it will take."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        left = None if self._over else self._rates.left
        words = [f"{self._fraction:.0%}", self._rates.words]
        if left is not None:
            words.append(f"{timedelta(seconds=round(left))} left")
        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_row(
            Text(self._phase), ProgressBar(total=1.0, completed=self._fraction, width=30),
            Text("  ".join(word for word in words if word)),
        )  # fmt: skip
        return line

    def close(self) -> None:
        """Draw it a last time, and leave it there."""
        self._screen.stop()
