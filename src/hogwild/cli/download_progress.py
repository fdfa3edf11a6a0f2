"""Progress of downloads: a bar on a terminal, else a line from time to time."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from hogwild.cli.console import Output
from hogwild.data.remote import showing_downloads
from hogwild.files import format_size

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

FIRST_LINE_SECONDS, LINE_SECONDS = 5.0, 30.0


@contextmanager
def downloads_shown(screen: Output, bar: Progress | None = None) -> Iterator[None]:
    """Show downloads within the block, on ``bar`` if the command has one."""
    tasks: dict[str, TaskID] = {}
    next_line = time.monotonic() + FIRST_LINE_SECONDS
    with ExitStack() as closing:
        # Backends log what they raise, too; the error of the command is one line.
        silence = logging.NullHandler()
        logging.getLogger().addHandler(silence)
        closing.callback(logging.getLogger().removeHandler, silence)

        def show(name: str, done: int, total: int | None) -> None:
            nonlocal bar, next_line
            if not screen.messages.is_terminal:
                if time.monotonic() >= next_line:
                    of = "" if total is None else f" of {format_size(total)}"
                    screen.note(f"{name}: {format_size(done)}{of} fetched")
                    next_line = time.monotonic() + LINE_SECONDS
                return
            if bar is None:
                bar = closing.enter_context(screen.progress("bytes"))
            if name not in tasks:
                tasks[name] = bar.add_task(f"Fetching {name}", total=total)
            bar.update(tasks[name], completed=done)

        with showing_downloads(show):
            yield
