"""Looks of charts: colours, the marker and line of each series, and the scales of axes.

The colours of curves are by Okabe and Ito. Blue and vermillion come first, because they contrast most with the paper.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

LIGHT_SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
# Dark backgrounds have a lighter blue, and white instead of black.
DARK_SERIES = ("#1f8acb", *LIGHT_SERIES[1:-1], "#f2f2f2")

LIGHT = {
    "paper": "#ffffff",
    "surface": "#f5f7f9",
    "ink": "#1a1f24",
    "muted": "#545d68",
    "line": "#d5dbe1",
    "grid": "#e6eaee",
    "accent": "#0b5c9e",
    "holds": "#00634a",
    "fails": "#a33a00",
    **{f"series-{index}": colour for index, colour in enumerate(LIGHT_SERIES)},
}
DARK = {
    "paper": "#12161b",
    "surface": "#1a2027",
    "ink": "#e8ecf0",
    "muted": "#a5b0bb",
    "line": "#3a444f",
    "grid": "#29313a",
    "accent": "#7fc1ff",
    "holds": "#4fd0a5",
    "fails": "#ff9d66",
    **{f"series-{index}": colour for index, colour in enumerate(DARK_SERIES)},
}

# Scale from dark blue to yellow. Its lightness increases evenly, so that it reads the same without colour.
SCALE = "Cividis"


def style_sheet() -> str:
    """Return the colours as CSS variables: dark if the reader prefers or chooses dark, and never dark in print.

    >>> style_sheet().splitlines()[0]
    ':root, .always-light { --paper: #ffffff; ...; }'
    """
    light = "; ".join(f"--{name}: {colour}" for name, colour in LIGHT.items())
    dark = "; ".join(f"--{name}: {colour}" for name, colour in DARK.items())
    rules = (
        f":root, .always-light {{ {light}; }}",
        ":root { color-scheme: light; }",
        "@media screen and (prefers-color-scheme: dark) {",
        f"  :root:not([data-theme=light]) {{ {dark}; color-scheme: dark; }}",
        "}",
        "@media screen {",
        f"  :root[data-theme=dark] {{ {dark}; color-scheme: dark; }}",
        "}",
    )
    return "\n".join(rules)


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


Scale = Literal["linear", "log", "category"]

_NEARLY = 1e-6  # maximum relative difference of gaps that count as equal


def line_scale(values: Iterable[Any], log: bool = False) -> Scale:
    """Return the scale for points and curves. Values without a positive number cannot have a logarithmic scale.

    >>> line_scale([1, 2.5, None]), line_scale([1, 10], log=True), line_scale([0], log=True)
    ('linear', 'log', 'linear')
    >>> line_scale(["sgd", "adam"])
    'category'
    """
    known = [value for value in values if value is not None]
    if not all(map(is_number, known)):
        return "category"
    return "log" if log and any(value > 0 for value in known) else "linear"


def cell_scale(values: Sequence[Any], log: bool = False) -> Scale:
    """Return the scale for bars and cells, which have a width. Numbers with unequal gaps become categories.

    >>> cell_scale([0, 5, 10]), cell_scale([1, 2, 7]), cell_scale([1, 2, 4], log=True)
    ('linear', 'category', 'log')
    """
    scale = line_scale(values, log)
    if scale != "linear":
        return scale
    known = sorted({value for value in values if value is not None})
    return "linear" if _equal([later - earlier for earlier, later in _pairs(known)]) else "category"


def grows_by_a_factor(values: Sequence[Any]) -> bool:
    """Return whether each number is the same multiple of the one before, as in 1, 2, 4, 8.

    >>> grows_by_a_factor([1, 2, 4, 8]), grows_by_a_factor([1, 2, 3, 4]), grows_by_a_factor(["a", "b", "c"])
    (True, False, False)
    """
    if len(values) < 3 or not all(is_number(value) and value > 0 for value in values):
        return False
    return _equal([math.log(later / earlier) for earlier, later in _pairs(values)])


def few_ticks(values: Iterable[Any]) -> list[float] | None:
    """Return the values as ticks of a logarithmic axis if they are 2 to 10 and far enough apart, else None.

    >>> few_ticks([1, 2, 4, 8, 4, 2]), few_ticks(range(1, 100))
    ([1, 2, 4, 8], None)
    """
    known = sorted({value for value in values if is_number(value) and value > 0})
    far_apart = all(later / earlier > 1.5 for earlier, later in _pairs(known))
    return known if 2 <= len(known) <= 10 and far_apart else None


def is_number(value: object) -> bool:
    """Return whether a value is a finite number; True and False are not numbers here."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _pairs(values: Sequence[Any]) -> list[tuple[Any, Any]]:
    return list(itertools.pairwise(values))


def _equal(gaps: Sequence[float]) -> bool:
    return not gaps or max(gaps) - min(gaps) <= _NEARLY * max(map(abs, gaps))
