"""What ``hogwild doctor`` has looked at, and how that is shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

MARKS = {"ok": ("✓", "green"), "note": ("·", "dim"), "warning": ("!", "yellow"), "error": ("✗", "bold red")}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. An ``error`` is something without which nothing works."""

    name: str
    status: Literal["ok", "note", "warning", "error"]
    said: str
    remedy: str = ""


def is_broken(checks: Iterable[Check]) -> bool:
    """Whether something does not work.

    >>> is_broken([Check("cores", "warning", "there is one core to use")])
    False
    """
    return any(check.status == "error" for check in checks)


def grid(rows: Iterable[tuple[RenderableType, ...]]) -> Table:
    """Rows of a mark, a name and what is said of it."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def results(checks: Iterable[Check]) -> Table:
    """The checks, one below the other."""
    from rich.text import Text

    return grid(
        (Text(*MARKS[check.status]), Text(check.name), Text.assemble(check.said, (_mend(check), "yellow")))
        for check in checks
    )


def verdict(checks: Iterable[Check]) -> Text:
    """All of them in one sentence."""
    from rich.text import Text

    checks = list(checks)
    if is_broken(checks):
        return Text("Something essential is broken; see ✗ above.", "bold red")
    wrong = sum(check.status == "warning" for check in checks)
    if wrong:
        return Text(f"Everything essential works; {wrong} warning{'s' * (wrong != 1)}.", "yellow")
    return Text("All is well.", "bold green")


def heading(words: str) -> Text:
    """A line above some others."""
    from rich.text import Text

    return Text(words, "bold cyan")


def _mend(check: Check) -> str:
    return f"\n{check.remedy}" if check.remedy else ""
