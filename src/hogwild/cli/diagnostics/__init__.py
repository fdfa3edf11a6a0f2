"""Results of the checks of ``hogwild doctor``, and their display."""

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
    """Result of one check. The status ``error`` means that nothing works without a repair."""

    name: str
    status: Literal["ok", "note", "warning", "error"]
    said: str
    remedy: str = ""


def is_broken(checks: Iterable[Check]) -> bool:
    """Return whether a check found an error.

    >>> is_broken([Check("cores", "warning", "there is one core to use")])
    False
    """
    return any(check.status == "error" for check in checks)


def grid(rows: Iterable[tuple[RenderableType, ...]]) -> Table:
    """Make a table with a mark, a name and a text in each row."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def results(checks: Iterable[Check]) -> Table:
    """Make a table of the checks, one per line."""
    from rich.text import Text

    return grid(
        (Text(*MARKS[check.status]), Text(check.name), Text.assemble(check.said, (_remedy_line(check), "yellow")))
        for check in checks
    )


def verdict(checks: Iterable[Check]) -> Text:
    """Return a summary of all checks in one sentence."""
    from rich.text import Text

    checks = list(checks)
    if is_broken(checks):
        return Text("Something essential is broken; see ✗ above.", "bold red")
    wrong = sum(check.status == "warning" for check in checks)
    if wrong:
        return Text(f"Everything essential works; {wrong} warning{'s' * (wrong != 1)}.", "yellow")
    return Text("All is well.", "bold green")


def heading(words: str) -> Text:
    """Make a heading."""
    from rich.text import Text

    return Text(words, "bold cyan")


def _remedy_line(check: Check) -> str:
    return f"\n{check.remedy}" if check.remedy else ""
