"""Live dashboard in a terminal, with curves over epochs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hogwild.callbacks.throughput import Rates, staleness_of, table_of
from hogwild.events import Event
from hogwild.terminal_plot import braille_character, rasterise

if TYPE_CHECKING:
    from rich.console import Console, Group, RenderableType
    from rich.text import Text


STEEP = 10.0  # ratio of the largest to the smallest value above which the axis is logarithmic
OLD = str.maketrans("┤│└─", "||+-")  # replacements of line-drawing characters for terminals that have only ASCII

Values = Sequence[float | None]


def curves(
    epochs: Sequence[float], lines: Sequence[tuple[Values, str]], width: int, height: int, ascii_only: bool = False
) -> Text:  # fmt: skip
    """Draw curves over increasing epochs, each in its style, into ``height`` lines of ``width`` characters and an axis.

    A value may be missing (None) or not finite. The curve then runs straight from its predecessor to its successor. The
    axis is logarithmic if the largest value is more than ten times the smallest.

    >>> print(curves([1, 2, 3, 4], [([8.0, 4.0, 2.0, 1.0], "green")], width=20, height=4))
       8 ┤⠑⢄
         │  ⠑⢄
    3.57 ┤    ⠑⠢⠤⣀
       1 ┤        ⠉⠒⠢⠤⢄⣀
         └──────────────
          epoch 1      4
    """
    from rich.text import Text

    known = [(array, style) for values, style in lines if (array := _filled(epochs, values)) is not None]
    if not known:
        return Text()
    everything = np.concatenate([array for array, _ in known])
    low, high = float(everything.min()), float(everything.max())
    steep = low > 0 and high > STEEP * low
    names = _names(low, high, steep, height)
    margin = max(len(name) for name in names.values())
    columns = max(8, width - margin - 2)
    x = np.asarray(epochs, float)
    drawn = [(rasterise(x, _down(array, low, high, steep), columns, height), style) for array, style in known]
    codes = np.bitwise_or.reduce([each for each, _ in drawn])
    picture = Text(no_wrap=True)
    for row in range(height):
        tick = f"{names.get(row, ''):>{margin}} {'┤' if row in names else '│'}"
        picture.append(tick.translate(OLD) if ascii_only else tick, "dim")
        used = range(len(np.trim_zeros(codes[row], "b")))
        styles = [next((style for each, style in drawn[::-1] if each[row, column]), None) for column in used]
        # Consecutive characters of one colour are appended together.
        for style, run in groupby(used, styles.__getitem__):
            picture.append("".join(braille_character(codes[row, column], ascii_only) for column in run), style)
        picture.append("\n")
    axis = " " * (margin + 1) + "└" + "─" * columns + "\n"
    picture.append(axis.translate(OLD) if ascii_only else axis, "dim")
    first, last = f"epoch {epochs[0]:g}", f"{epochs[-1]:g}" if len(epochs) > 1 else ""
    picture.append(" " * (margin + 2) + first + last.rjust(columns - len(first)), "dim")
    return picture


def _names(low: float, high: float, steep: bool, height: int) -> dict[int, str]:
    """Return the labels of the vertical axis at the first, middle and last line, by line."""
    if high <= low:
        return {height // 2: f"{high:.4g}"}
    part = (4 * (height // 2) + 1.5) / (4 * height - 1)  # share of the way down to the middle line
    middle = np.exp((1 - part) * np.log(high) + part * np.log(low)) if steep else (1 - part) * high + part * low
    return {0: f"{high:.4g}", height // 2: f"{middle:.3g}", height - 1: f"{low:.4g}"}


def _filled(epochs: Sequence[float], values: Values) -> NDArray[np.float64] | None:
    """Return a value for every epoch, interpolated between the known ones; None if none is known."""
    given = np.array([np.nan if value is None else value for value in values], np.float64)
    there = np.isfinite(given)
    if not there.any():
        return None
    x = np.asarray(epochs, float)
    return np.asarray(np.interp(x, x[there], given[there]))


def _down(values: NDArray[np.float64], low: float, high: float, steep: bool) -> NDArray[np.float64]:
    """Return the distance of each value from the top of the axis, from 0 to 1."""
    if high <= low:
        return np.full(len(values), 0.5)
    if steep:
        return np.asarray((np.log(high) - np.log(values)) / (np.log(high) - np.log(low)))
    return (high - values) / (high - low)


OFTEN = 4  # redraws per second
TALL, LOW = 11, 4  # greatest and least height of the curves, in lines
WIDE = 110  # greatest width of the curves, in characters
AROUND = 6  # lines besides the curves and the table
LOSS, HELD_OUT = "green", "yellow"


class Live:
    """Dashboard that draws the training and held-out loss over the epochs, rows/s and the time left.

    On a cluster a table below shows the rate and staleness of each node. After any message-passing run, and after one
    that counts conflicts, the table shows the distribution of each worker's staleness. The last picture stays on the
    screen. Without a terminal there is no output.

    Parameters
    ----------
    console : rich.console.Console, optional
        Console to draw on; by default standard error.
    """

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = console or Console(stderr=True)
        self._title, self._phase, self._fraction, self._over = "", "Starting", 0.0, False
        self._records: list[Event] = []
        self._rates = Rates()
        self._below: Any = None
        self._lines = 0  # height of the table below, in lines
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
        self._below = table_of(event["nodes"], self._console.width)
        self._lines = self._below.row_count + 1

    def _on_staleness(self, event: Event) -> None:
        if event["workers"]:
            self._below = staleness_of(event["workers"])
            self._lines = self._below.row_count + 1

    def _on_conflicts(self, event: Event) -> None:
        self._on_staleness(event["staleness"])

    def _on_result(self, event: Event) -> None:
        self._phase, self._over = f"Done, by {event['stop_reason']}", True

    def picture(self) -> Group:
        """Return the present picture."""
        from rich.console import Group
        from rich.text import Text

        parts: list[RenderableType] = [Text(self._title, "bold", no_wrap=True, overflow="ellipsis")]
        if self._records:
            parts += [self._curve(), self._figures()]
        parts.append(self._course())
        return Group(*parts, *([] if self._below is None else [self._below]))

    def _curve(self) -> Text:
        records = list(self._records)  # a copy, because events arrive while the picture is drawn
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
        """Return a line with the phase of the run, its progress, its throughput and the time left."""
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
        """Draw the last picture, and leave it on the screen."""
        self._screen.stop()
