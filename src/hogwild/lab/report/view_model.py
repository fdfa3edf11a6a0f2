"""View model of a report: all computed values, so that the template only inserts them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hogwild.files import to_jsonable
from hogwild.lab.report.figure_tables import (
    CSV,
    PARQUET,
    Download,
    Names,
    csv_of,
    download,
    parquet_of,
    path_of,
    side_by_side,
    slug,
    table_of,
    tidy,
    written,
)
from hogwild.lab.report.plotly_charts import chart_plot, map_plot
from hogwild.lab.report.plotly_layout import Entry
from hogwild.lab.report_model import Chart, Finding, Map, Report, Section, Table

_MOST_ROWS, _MOST_COLUMNS = 400, 40  # maximum rows and columns of a table behind a figure; the CSV file has all of them


@dataclass(frozen=True, slots=True)
class Grid:
    """Table as text; ``numeric`` tells which columns are numbers, and ``note`` names the rows that were left out."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """Figure or table of the page; one without a ``plot`` has only its grid."""

    id: str
    title: str
    words: str
    label: str
    entries: tuple[Entry, ...]
    plot: Mapping[str, Any] | None
    grid: Grid
    downloads: tuple[Download, ...]


@dataclass(frozen=True, slots=True)
class Chapter:
    """Section of the page; ``missing`` gives the reason for an absent download."""

    id: str
    number: int
    title: str
    question: str
    findings: tuple[Finding, ...]
    parts: tuple[Shown, ...]
    method: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    downloads: tuple[Download, ...]
    trials: int
    missing: str


def chapters(report: Report) -> tuple[Chapter, ...]:
    """Return all sections, with unique names."""
    names = Names()
    return tuple(_chapter(section, number, names) for number, section in enumerate(report.sections, 1))


def figures_of(shown: tuple[Chapter, ...]) -> Iterator[Shown]:
    """Yield the parts that have a plot."""
    for chapter in shown:
        yield from (part for part in chapter.parts if part.plot is not None)


def tally(findings: tuple[Finding, ...]) -> dict[bool | None, int]:
    """Count the findings that hold, that do not hold, and that make no claim.

    >>> tally((Finding("a", True), Finding("b")))
    {True: 1, False: 0, None: 1}
    """
    return {holds: sum(finding.holds is holds for finding in findings) for holds in (True, False, None)}


def grid_of(table: Table, note: str = "") -> Grid:
    """Return a table with its numbers formatted for people.

    >>> grid_of(Table("", ("rule", "loss"), (("sgd", 0.51234567), ("adam", None))))
    Grid(columns=('rule', 'loss'), rows=(('sgd', '0.5123'), ('adam', '–')), numeric=(False, True), note='')
    """
    width = range(len(table.columns))
    numeric = tuple(all(_is_numeric(row[at]) for row in table.rows if at < len(row)) for at in width)
    return Grid(table.columns, tuple(tuple(map(written, row)) for row in table.rows), numeric, note)


def _chapter(section: Section, number: int, names: Names) -> Chapter:
    name = names(section.name)
    table = table_of(section.records, section.title)
    downloads, missing = [], ""
    if section.records:
        what = f"all records of {section.title}"
        downloads.append(download(f"{name}.csv", "CSV", what, CSV, csv_of(table)))
        parquet = parquet_of(table)
        if parquet is None:
            missing = "Parquet was left out: pyarrow was not installed where this page was made."
        else:
            downloads.append(download(f"{name}.parquet", "Parquet", what, PARQUET, parquet))
    return Chapter(
        id=name,
        number=number,
        title=section.title,
        question=section.question,
        findings=section.findings,
        parts=tuple(_shown(part, names(f"{name} {slug(part.title)}")) for part in section.parts),
        method=tuple(text.strip() for text in section.method.split("\n\n") if text.strip()),
        settings=tuple((str(key), written(to_jsonable(value))) for key, value in section.settings.items()),
        downloads=tuple(downloads),
        trials=len(section.records),
        missing=missing,
    )


def _shown(part: Chart | Map | Table, name: str) -> Shown:
    downloads = [download(f"{name}.csv", "CSV", part.title, CSV, csv_of(tidy(part)))]
    if isinstance(part, Table):
        return Shown(name, part.title, "", part.title, (), None, grid_of(part), tuple(downloads))
    if isinstance(part, Map) and part.path is not None:
        path = path_of(part)
        downloads.append(download(f"{name}-path.csv", "CSV of the path", path.title, CSV, csv_of(path)))
    plot = map_plot(part) if isinstance(part, Map) else chart_plot(part)
    spec = {"data": plot.data, "layout": plot.layout}
    grid = _thinned(side_by_side(part), isinstance(part, Map))
    return Shown(name, part.title, part.words, _label(part), plot.entries, spec, grid, tuple(downloads))


def _label(part: Chart | Map) -> str:
    """Return the description of a figure, for readers who cannot see it."""
    if part.words:
        return f"{part.title}. {part.words}"
    if isinstance(part, Map):
        return f"{part.title}. {part.unit} for each {part.x} and {part.y}."
    return f"{part.title}. {part.y} over {part.x}: {', '.join(one.name for one in part.series)}."


def _thinned(table: Table, is_map: bool) -> Grid:
    """Limit a table to a readable size: evenly spaced rows and columns of a map, the first rows of any other table."""
    rows, columns = len(table.rows), len(table.columns)
    if not is_map:
        note = f"The first {_MOST_ROWS:,} of {rows:,} rows; all of them are in the CSV." if rows > _MOST_ROWS else ""
        return grid_of(Table(table.title, table.columns, table.rows[:_MOST_ROWS]), note)
    down, across = -(-rows // _MOST_COLUMNS) or 1, -(-(columns - 1) // _MOST_COLUMNS) or 1
    if down == across == 1:
        return grid_of(table)
    kept = (0, *range(1, columns, across))
    thin = tuple(tuple(row[at] for at in kept) for row in table.rows[::down])
    note = (
        f"{len(thin):,} of {rows:,} rows and {len(kept) - 1:,} of {columns - 1:,} columns; all of them are in the CSV."
    )
    return grid_of(Table(table.title, tuple(table.columns[at] for at in kept), thin), note)


def _is_numeric(value: object) -> bool:
    value = value.tolist() if hasattr(value, "tolist") else value
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
