"""Charts and maps as Plotly figures: curves with bands, points, bars with error bars, coloured cells and contours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hogwild.lab.report.chart_styles import (
    SCALE,
    Look,
    Scale,
    cell_scale,
    grows_by_a_factor,
    is_number,
    line_scale,
    look,
)
from hogwild.lab.report.figure_tables import column, matrix, written
from hogwild.lab.report.plotly_layout import Entry, Plot, axis, colour, label, layout, lines, places
from hogwild.lab.report_model import Chart, Map, Series

_MARKERS_SHOWN = 14  # maximum number of markers on one curve


def chart_plot(chart: Chart) -> Plot:
    """Draw a chart, with all bands below all curves.

    >>> plot = chart_plot(Chart("Loss", "epoch", "loss", (Series("sgd", [1, 2], [0.5, 0.25], spread=[0.1, 0.05]),)))
    >>> [trace["type"] for trace in plot.data], plot.entries[0].traces
    (['scatter', 'scatter'], (0, 1))
    """
    x_scale, y_scale = scales(chart)
    data: list[dict[str, Any]] = []
    entries = []
    bands = [
        (index, edges(one, log=y_scale == "log"))
        for index, one in enumerate(chart.series)
        if one.spread is not None and one.style in ("line", "dashed")
    ]
    band_of = {}
    for index, (low, high) in bands:
        band_of[index] = len(data)
        data.append(_band(places(chart.series[index].x, x_scale), low, high, look(index)))
    for index, one in enumerate(chart.series):
        below = (band_of[index],) if index in band_of else ()
        entries.append(Entry(one.name, one.style, look(index), (*below, len(data))))
        data.append(_trace(one, look(index), x_scale))
    xs = [x for one in chart.series for x in places(one.x, x_scale)]
    across = "closest" if all(one.style == "points" for one in chart.series) else "x unified"
    return Plot(data, layout(axis(chart.x, x_scale, xs), axis(chart.y, y_scale), across), tuple(entries))


def scales(chart: Chart) -> tuple[Scale, Scale]:
    """Return the scales of the x axis and the y axis."""
    xs = [x for one in chart.series for x in column(one.x)]
    ys = [y for one in chart.series for y in column(one.y)]
    barred = any(one.style == "bars" for one in chart.series)
    return (cell_scale if barred else line_scale)(xs, chart.log_x), line_scale(ys, chart.log_y)


def edges(series: Series, *, log: bool) -> tuple[list[float | None], list[float | None]]:
    """Return the lower and the upper edge of a band.

    On a logarithmic axis the lower edge is at the same ratio below as the upper edge is above, so that it stays
    positive.

    >>> edges(Series("a", [1, 2], [3.0, 1.0], spread=[1.0, 2.0]), log=False)
    ([2.0, -1.0], [4.0, 3.0])
    >>> edges(Series("a", [1], [1.0], spread=[1.0]), log=True)
    ([0.5], [2.0])
    """
    low: list[float | None] = []
    high: list[float | None] = []
    for y, more in zip(column(series.y), spread_of(series), strict=False):
        below = None if y is None else y * y / (y + more) if log and y > 0 else y - more
        low.append(below)
        high.append(None if y is None else y + more)
    return low, high


def spread_of(series: Series) -> list[float]:
    """Return the distance of repeated runs from each point, zero where it is unknown."""
    if series.spread is None:
        return [0.0] * len(series.y)
    return [more or 0.0 for more in column(series.spread)]


def _trace(series: Series, seen: Look, x_scale: Scale) -> dict[str, Any]:
    ink = colour(f"series-{seen.colour}")
    trace: dict[str, Any] = {
        "name": label(series.name, 60),
        "x": places(series.x, x_scale),
        "y": column(series.y),
        "hovertemplate": "%{y:.4~g}",
    }
    if series.spread is not None:
        trace |= {"customdata": spread_of(series), "hovertemplate": "%{y:.4~g} ± %{customdata:.2~g}"}
        if series.style in ("points", "bars"):
            whisker = colour("ink") if series.style == "bars" else ink
            trace["error_y"] = {
                "type": "data",
                "array": spread_of(series),
                "color": whisker,
                "thickness": 1.5,
                "width": 4,
            }
    if series.style == "bars":
        pattern = {
            "shape": seen.pattern.plotly,
            "bgcolor": ink,
            "fgcolor": colour("paper"),
            "size": 8,
            "solidity": 0.25,
        }
        return trace | {"type": "bar", "marker": {"color": ink, "pattern": pattern, "line": {"color": ink, "width": 1}}}
    marker = {"symbol": seen.marker.plotly, "size": 9, "color": ink, "line": {"color": colour("paper"), "width": 1}}
    if series.style == "points":
        return trace | {"type": "scatter", "mode": "markers", "marker": marker}
    line: dict[str, Any] = {"color": ink, "width": 2.25}
    if series.style == "dashed":
        line["dash"] = ",".join(f"{length}px" for length in seen.dash)
        return trace | {"type": "scatter", "mode": "lines", "line": line}
    marker["maxdisplayed"] = _MARKERS_SHOWN
    return trace | {"type": "scatter", "mode": "lines+markers", "line": line, "marker": marker}


def _band(x: Sequence[Any], low: list[float | None], high: list[float | None], seen: Look) -> dict[str, Any]:
    """Make a polygon along the upper edge and back along the lower edge; a gap in the curve is a gap in the band."""
    xs: list[Any] = []
    ys: list[float | None] = []
    for start, end in _stretches(high):
        xs += [*x[start:end], *reversed(x[start:end]), None]
        ys += [*high[start:end], *reversed(low[start:end]), None]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": xs,
        "y": ys,
        "fill": "toself",
        "fillcolor": colour(f"series-{seen.colour}", 0.2),
        "line": {"width": 0},
        "hoverinfo": "skip",
    }


def _stretches(values: Sequence[float | None]) -> list[tuple[int, int]]:
    """Return the ranges without a gap, as (start, end)."""
    found, start = [], None
    for index, value in enumerate([*values, None]):
        if value is not None and start is None:
            start = index
        elif value is None and start is not None:
            found.append((start, index))
            start = None
    return found


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
