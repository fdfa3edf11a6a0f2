"""Maps as Plotly figures: coloured cells or contours, with a path on top."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hogwild.lab.report.axis_scales import Scale, cell_scale, grows_by_a_factor, is_number
from hogwild.lab.report.colours import SCALE
from hogwild.lab.report.figure_tables import column, matrix
from hogwild.lab.report.formatting import written
from hogwild.lab.report.plotly_layout import Entry, Plot, axis, colour, label, layout, lines, places
from hogwild.lab.report.series_styles import look
from hogwild.lab.report_model import Map

_HOVER = "%{xaxis.title.text}: %{x}<br>%{yaxis.title.text}: %{y}<br>%{fullData.name}: %{text}<extra></extra>"
_WRITTEN_COLUMNS, _WRITTEN_ROWS = 10, 14  # maximum columns and rows of a map whose cells show their numbers


def map_plot(part: Map) -> Plot:
    """Draw a map. Its path is a light line on a dark line, visible on any colour, with marks at both ends.

    >>> plot = map_plot(Map("Loss", "a", "b", [0, 1], [0, 1], [[1, 2], [3, None]], "loss", path=([0, 1], [0, 1])))
    >>> [trace["type"] for trace in plot.data], plot.entries[0].traces
    (['heatmap', 'scatter', 'scatter', 'scatter'], (1, 2, 3))
    """
    x_scale, y_scale = map_scale(part, part.xs), map_scale(part, part.ys)
    xs, ys = places(part.xs, x_scale), places(part.ys, y_scale)
    data = [_ground(part, xs, ys)]
    entries: tuple[Entry, ...] = ()
    if part.path is not None:
        data += _path(*part.path)
        entries = (Entry("path, from circle to star", "line", look(6), tuple(range(1, len(data)))),)
    found = layout(axis(part.x, x_scale, xs), axis(part.y, y_scale, ys), "closest")
    for side in ("xaxis", "yaxis"):
        found[side] |= {"showgrid": False, "ticks": "outside", "constrain": "domain"}
    return Plot(data, found, entries)


def map_scale(part: Map, values: Sequence[Any]) -> Scale:
    """Return the scale of one side. Contours and paths need positions between the given ones, which categories lack."""
    values = column(values)
    if part.contours or part.path is not None:
        return "linear" if all(map(is_number, values)) else "category"
    return cell_scale(values, log=grows_by_a_factor(values))


def heights(part: Map) -> list[list[float | None]]:
    """Return the values, or their logarithms to base ten for a logarithmic map."""
    rows: list[list[float | None]] = matrix(part.values)
    if not part.log:
        return rows
    return [[math.log10(value) if value is not None and value > 0 else None for value in row] for row in rows]


def _ground(part: Map, xs: list[Any], ys: list[Any]) -> dict[str, Any]:
    rows = matrix(part.values)
    bar: dict[str, Any] = {
        "title": {"text": lines(part.unit, 14, 3) + "<br>", "side": "top"},
        "thickness": 14,
        "outlinewidth": 0,
        "tickcolor": colour("line"),
        "exponentformat": "power",
    }
    if part.log:
        bar |= _decades([height for row in heights(part) for height in row if height is not None])
    ground: dict[str, Any] = {
        "type": "contour" if part.contours else "heatmap",
        "name": label(part.unit or "value", 40),
        "x": xs,
        "y": ys,
        "z": heights(part),
        "text": [[written(value, 3) for value in row] for row in rows],
        "hovertemplate": _HOVER,
        "colorscale": SCALE,
        "colorbar": bar,
        "hoverongaps": False,
    }
    if part.contours:
        ground |= {"contours": {"coloring": "heatmap"}, "line": {"width": 0.6, "color": colour("paper", 0.55)}}
        ground |= {"ncontours": 24}
    else:
        ground |= {"xgap": 1, "ygap": 1}
        if len(xs) <= _WRITTEN_COLUMNS and len(ys) <= _WRITTEN_ROWS:
            ground |= {"texttemplate": "%{text}", "textfont": {"size": 12}}
    return ground


def _decades(logarithms: list[float]) -> dict[str, Any]:
    """Return the ticks of a logarithmic colour bar: powers of ten, with 2 and 5 between them below three decades."""
    if not logarithms:
        return {}
    low, high = min(logarithms), max(logarithms)
    steps = (1, 2, 5) if high - low < 3 else (1,)
    powers = range(math.floor(low), math.ceil(high) + 1)
    marks = [step * 10.0**power for power in powers for step in steps]
    marks = [mark for mark in marks if low - 1e-9 <= math.log10(mark) <= high + 1e-9]
    return {"tickvals": [math.log10(mark) for mark in marks], "ticktext": [written(mark, 3) for mark in marks]}


def _path(xs: Sequence[float], ys: Sequence[float]) -> list[dict[str, Any]]:
    xs, ys = column(xs), column(ys)
    both: dict[str, Any] = {"type": "scatter", "x": xs, "y": ys, "mode": "lines"}
    hover = {"hovertemplate": "path: %{x:.4~g}, %{y:.4~g}<extra></extra>"}
    ends = {
        "symbol": ["circle", "star"],
        "size": [11, 15],
        "color": "#ffffff",
        "line": {"color": "#000000", "width": 1.5},
    }
    return [
        both | {"line": {"color": "#000000", "width": 4}, "hoverinfo": "skip"},
        both | {"line": {"color": "#ffffff", "width": 2}} | hover,
        {"type": "scatter", "mode": "markers", "x": [*xs[:1], *xs[-1:]], "y": [*ys[:1], *ys[-1:]], "marker": ends}
        | hover,
    ]
