"""What a report shows: charts, maps and tables, as plain values that any page or picture can be drawn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Style = Literal["line", "dashed", "points", "bars"]


@dataclass(frozen=True, slots=True)
class Series:
    """One curve: ``spread`` is how far above and below each point repeated runs lie, None where there was but one."""

    name: str
    x: Sequence[Any]
    y: Sequence[float | None]
    spread: Sequence[float] | None = None
    style: Style = "line"


@dataclass(frozen=True, slots=True)
class Chart:
    """Curves over common axes. ``words`` say what is to be seen, for those who cannot see it."""

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    words: str = ""
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, slots=True)
class Map:
    """A number for each place of a plane, ``values[row][column]``, perhaps with a ``path`` (xs, ys) drawn on it."""

    title: str
    x: str
    y: str
    xs: Sequence[Any]
    ys: Sequence[Any]
    values: Sequence[Sequence[float | None]]
    unit: str
    words: str = ""
    log: bool = False
    contours: bool = False
    path: tuple[Sequence[float], Sequence[float]] | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of plain values below names of columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence that was computed from the numbers, and whether they bear out the claim in it; None: there is none."""

    text: str
    holds: bool | None = None


Part = Chart | Map | Table


@dataclass(frozen=True, slots=True)
class Section:
    """One study: what was asked, what was found, what it looks like, and every number that was recorded."""

    name: str
    title: str
    question: str
    findings: tuple[Finding, ...]
    parts: tuple[Part, ...]
    records: tuple[Mapping[str, Any], ...]  # one for each trial, flat and plain: what can be downloaded
    method: str = ""  # how it was done, in a paragraph or two
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """A page: its sections, and what they were made with."""

    title: str
    sections: tuple[Section, ...]
    made: str  # when, as people write it
    machine: Mapping[str, str]
    versions: Mapping[str, str]
