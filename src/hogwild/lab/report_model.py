"""Content of a report: charts, maps and tables as plain values, from which any page or picture can be drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Style = Literal["line", "dashed", "points", "bars"]


@dataclass(frozen=True, slots=True)
class Series:
    """Curve; ``spread`` is the distance of repeated runs above and below each point, None for a single run."""

    name: str
    x: Sequence[Any]
    y: Sequence[float | None]
    spread: Sequence[float] | None = None
    style: Style = "line"


@dataclass(frozen=True, slots=True)
class Chart:
    """Chart: curves over common axes; ``words`` describe the chart for readers who cannot see it."""

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    words: str = ""
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, slots=True)
class Map:
    """Map: a value for each point of a grid, ``values[row][column]``, with an optional ``path`` (xs, ys) on it."""

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
    """Table: rows of plain values under column names."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """Sentence computed from the results; ``holds`` tells whether they support its claim (None: no claim)."""

    text: str
    holds: bool | None = None


Part = Chart | Map | Table


@dataclass(frozen=True, slots=True)
class Section:
    """Section about one study: its question, findings, figures, and every recorded number."""

    name: str
    title: str
    question: str
    findings: tuple[Finding, ...]
    parts: tuple[Part, ...]
    records: tuple[Mapping[str, Any], ...]  # one flat record of plain values per trial, offered as a download
    method: str = ""  # description of the method, in one or two paragraphs
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """Report: its sections, and the environment in which they were made."""

    title: str
    sections: tuple[Section, ...]
    made: str  # date and time of the report, as text
    machine: Mapping[str, str]
    versions: Mapping[str, str]
