"""Layout of Plotly figures: plain values, with names of colours in place of colours.

A colour is written ``{"colour": "series-0"}``, with an optional ``"alpha"``. The page inserts its value for a light or
a dark background. Texts are escaped, because Plotly interprets tags such as ``<b>`` as formatting.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hogwild.lab.report.chart_styles import Look, Scale, few_ticks
from hogwild.lab.report.figure_tables import column, shortened, written
from hogwild.lab.report_model import Style

_LONGEST_NAME = 24  # maximum characters of a tick label; the hover text shows the whole name


@dataclass(frozen=True, slots=True)
class Entry:
    """Entry of a legend; ``traces`` are the numbers of the traces that it shows or hides."""

    name: str
    style: Style
    look: Look
    traces: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """Input of Plotly, and the legend, which the page itself draws."""

    data: list[dict[str, Any]]
    layout: dict[str, Any]
    entries: tuple[Entry, ...]


def colour(name: str, alpha: float | None = None) -> dict[str, Any]:
    """Return a colour by name, which the page resolves."""
    return {"colour": name} if alpha is None else {"colour": name, "alpha": alpha}


def label(text: str, longest: int = 80) -> str:
    """Return a text that Plotly shows verbatim.

    >>> label("a <b>bold</b> claim & more")
    'a &lt;b&gt;bold&lt;/b&gt; claim &amp; more'
    """
    return shortened(text, longest).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def lines(text: str, width: int, most: int) -> str:
    """Return a text broken into at most ``most`` lines, in the notation of Plotly.

    >>> lines("seconds until the target", 12, 2)
    'seconds<br>until the…'
    """
    found = textwrap.wrap(text, width, max_lines=most, placeholder="…")
    return "<br>".join(label(line) for line in found)


def places(values: Iterable[Any], scale: Scale) -> list[Any]:
    """Return the positions of values along an axis: numbers, or names that are shown verbatim."""
    if scale == "category":
        return [label(written(value), 500) for value in column(values)]
    return column(values)


def axis(title: str, scale: Scale, values: Sequence[Any] = ()) -> dict[str, Any]:
    """Return an axis; ``values`` give the order of categories, and the ticks where there are few."""
    found: dict[str, Any] = {
        "title": {"text": lines(title, 40, 2), "standoff": 10},
        "type": scale,
        "automargin": True,
        "gridcolor": colour("grid"),
        "linecolor": colour("line"),
        "tickcolor": colour("line"),
        "ticks": "outside",
        "ticklen": 4,
        "showline": True,
        "zeroline": False,
        "hoverformat": ".4~g",
        "exponentformat": "power",
    }
    if scale == "category":
        names = list(dict.fromkeys(values))
        found |= {"categoryorder": "array", "categoryarray": names}
        if any(len(name) > _LONGEST_NAME for name in names):
            found |= {"tickvals": names, "ticktext": [label(html.unescape(name), _LONGEST_NAME) for name in names]}
    elif scale == "log" and (ticks := few_ticks(values)):
        found |= {"tickvals": ticks, "ticktext": [written(tick) for tick in ticks]}
    elif scale == "log":
        found["nticks"] = 6  # powers of ten, with 2 and 5 between them where there is room
    return found


def layout(x: dict[str, Any], y: dict[str, Any], hover: str) -> dict[str, Any]:
    """Return the layout common to all plots. ``uirevision`` keeps the zoom when colours change."""
    return {
        "autosize": True,
        "uirevision": "kept",
        "showlegend": False,
        "hovermode": hover,
        "paper_bgcolor": colour("paper"),
        "plot_bgcolor": colour("paper"),
        "font": {
            "family": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif",
            "size": 13,
            "color": colour("ink"),
        },
        "margin": {"l": 44, "r": 14, "t": 26, "b": 40},
        "xaxis": x,
        "yaxis": y,
        "barmode": "group",
        "bargap": 0.25,
        "hoverlabel": {
            "bgcolor": colour("surface"),
            "bordercolor": colour("line"),
            "font": {"color": colour("ink")},
            "namelength": 40,
        },
        "modebar": {"bgcolor": colour("paper", 0.0), "color": colour("muted"), "activecolor": colour("accent")},
    }
