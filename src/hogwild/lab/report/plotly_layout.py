"""Charts and maps as what Plotly draws: plain values, with the names of colours in place of colours.

A colour is written ``{"colour": "series-0"}``, perhaps with an ``"alpha"``; the page puts in what it is on light or on
dark paper. Texts are escaped, as Plotly takes some tags for formatting.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hogwild.lab.report.axis_scales import Scale, few_ticks
from hogwild.lab.report.figure_tables import column
from hogwild.lab.report.formatting import shortened, written
from hogwild.lab.report.series_styles import Look
from hogwild.lab.report_model import Style

_LONGEST_NAME = 24  # along an axis; all of it is shown when it is pointed at


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a legend: what is shown or hidden with it are ``traces``, by their numbers."""

    name: str
    style: Style
    look: Look
    traces: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """What Plotly is given, and the legend, which the page draws itself."""

    data: list[dict[str, Any]]
    layout: dict[str, Any]
    entries: tuple[Entry, ...]


def colour(name: str, alpha: float | None = None) -> dict[str, Any]:
    """A colour by its name, which the page looks up."""
    return {"colour": name} if alpha is None else {"colour": name, "alpha": alpha}


def label(text: str, longest: int = 80) -> str:
    """A text that Plotly shows as it is.

    >>> label("a <b>bold</b> claim & more")
    'a &lt;b&gt;bold&lt;/b&gt; claim &amp; more'
    """
    return shortened(text, longest).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def lines(text: str, width: int, most: int) -> str:
    """A text on a few lines, as Plotly breaks them.

    >>> lines("seconds until the target", 12, 2)
    'seconds<br>until the…'
    """
    found = textwrap.wrap(text, width, max_lines=most, placeholder="…")
    return "<br>".join(label(line) for line in found)


def places(values: Iterable[Any], scale: Scale) -> list[Any]:
    """Where things are along an axis: numbers, or names that are shown as they are."""
    if scale == "category":
        return [label(written(value), 500) for value in column(values)]
    return column(values)


def axis(title: str, scale: Scale, values: Sequence[Any] = ()) -> dict[str, Any]:
    """An axis; ``values`` are what lies along it, for names in their order and for ticks where there are few."""
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
    """What all plots have in common. ``uirevision`` keeps what was zoomed into when colours change."""
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
