"""Options for tables with columns: which column is the label, and what the others are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from hogwild.data.tables.column_roles import ColumnRoles

_PANEL = "Columns of tables (CSV, JSON lines, Arrow, Parquet)"
_Columns = list[str] | None


def _columns(help: str) -> Any:
    return typer.Option(metavar="COLUMN[:HOW],...", help=help, show_default=False, rich_help_panel=_PANEL)


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Options for the columns of a table. Columns are given by name, by number from 1, or by a pattern such as I*."""

    label: Annotated[
        str | None,
        typer.Option(
            help="The column with the label. Default: label, target, y, click, ..., else the first; in Parquet label.",
            show_default=False,
            rich_help_panel=_PANEL,
        ),
    ] = None
    weight: Annotated[str | None, typer.Option(help="The column with the row's weight.", rich_help_panel=_PANEL)] = None
    numeric: Annotated[
        _Columns,
        _columns("Numbers; HOW: standard (default), none, log, log-bins or quantile:N."),
    ] = None
    categorical: Annotated[_Columns, _columns("Categories; HOW: hash (default), dictionary or list:SEPARATOR.")] = None
    text: Annotated[_Columns, _columns("Text; HOW: words (default) or bigrams.")] = None
    drop: Annotated[_Columns, _columns("Columns to leave out.")] = None
    fields: Annotated[
        _Columns,
        typer.Option(
            metavar="COLUMN,...",
            help="fm, ffm: each column is a field, and those that fit one entry here are one field together; each: no "
            "column is grouped. Default for ffm: each.",
            show_default=False,
            rich_help_panel=_PANEL,
        ),
    ] = None
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="csv: does the first line have names? Default: a guess.",
            show_default=False,
            rich_help_panel=_PANEL,
        ),
    ] = None

    def grouped(self) -> tuple[str, ...] | None:
        """Return the entries of columns that are one field together; None if fields were not asked for."""
        from hogwild.data.tables.column_roles import entries_of

        return None if self.fields is None else tuple(entry for entry in entries_of(self.fields) if entry != "each")

    def roles(self) -> ColumnRoles | None:
        """Return the roles that were given; None if none were."""
        from hogwild.data.tables.column_roles import ColumnRoles, entries_of

        given = {name: entries_of(getattr(self, name) or ()) for name in ("numeric", "categorical", "text", "drop")}
        return ColumnRoles(**given) if any(given.values()) else None
