"""Styles of curves and bars that differ without colour: markers, dashes and patterns."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.lab.report.colours import LIGHT_SERIES


@dataclass(frozen=True, slots=True)
class Marker:
    """Marker: its names in Plotly and Matplotlib, and its path in a box of 32 by 14."""

    plotly: str
    matplotlib: str
    path: str


@dataclass(frozen=True, slots=True)
class Pattern:
    """Fill pattern of a bar: its names in Plotly and Matplotlib, and its path in a box of 32 by 14."""

    plotly: str
    matplotlib: str
    path: str


@dataclass(frozen=True, slots=True)
class Look:
    """Style that distinguishes one series from the others of its chart."""

    colour: int
    marker: Marker
    dash: tuple[int, ...]
    pattern: Pattern


MARKERS = (
    Marker("circle", "o", "M16 3a4 4 0 1 0 .01 0z"),
    Marker("square", "s", "M12.5 3.5h7v7h-7z"),
    Marker("diamond", "D", "M16 2l5 5-5 5-5-5z"),
    Marker("triangle-up", "^", "M16 2.5l5 8.5h-10z"),
    Marker("cross", "P", "M14.5 2.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z"),
    Marker("triangle-down", "v", "M11 3h10l-5 8.5z"),
    Marker("star", "*", "M16 1.5l1.5 3.8 4 .3-3.1 2.6 1 4-3.4-2.2-3.4 2.2 1-4-3.1-2.6 4-.3z"),
    Marker("x", "X", "M12.5 2L16 5.5 19.5 2 21 3.5 17.5 7l3.5 3.5-1.5 1.5L16 8.5 12.5 12 11 10.5 14.5 7 11 3.5z"),
)
DASHES = ((7, 4), (2, 3), (9, 3, 2, 3), (14, 4), (5, 2, 1, 2, 1, 2))
PATTERNS = (
    Pattern("", "", ""),
    Pattern("/", "///", "M4 10l6-6M9 12l9-9M17 12l9-9M25 11l3-3"),
    Pattern("x", "xxx", "M5 3l8 8M13 3l-8 8M13 3l8 8M21 3l-8 8M20 3l8 8M28 3l-8 8"),
    Pattern("-", "---", "M4 5h24M4 9h24"),
    Pattern("|", "|||", "M9 2v10M16 2v10M23 2v10"),
    Pattern("\\", "\\\\\\", "M4 4l6 6M9 2l9 9M17 2l9 9M25 3l3 3"),
    Pattern(".", "...", "M8 4.5h2M15 4.5h2M22 4.5h2M8 9.5h2M15 9.5h2M22 9.5h2"),
    Pattern("+", "+++", "M4 7h24M9 2v10M16 2v10M23 2v10"),
)


def look(index: int) -> Look:
    """Return the style of the series at ``index``; the first 56 styles are distinct.

    >>> look(1).colour, look(1).marker.plotly, look(8).colour, look(8).marker.plotly
    (1, 'square', 1, 'circle')
    """
    return Look(
        index % len(LIGHT_SERIES),
        MARKERS[index % len(MARKERS)],
        DASHES[index % len(DASHES)],
        PATTERNS[index % len(PATTERNS)],
    )
