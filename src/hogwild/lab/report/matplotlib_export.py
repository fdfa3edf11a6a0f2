"""Charts and maps as PNG and SVG pictures for papers, drawn by Matplotlib in the colours of the page."""

from __future__ import annotations

import io
import itertools
import math
import textwrap
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hogwild.errors import MissingExtraError
from hogwild.files import write_file
from hogwild.lab.report.chart_styles import LIGHT, LIGHT_SERIES, SCALE, Scale, few_ticks, is_number, look
from hogwild.lab.report.figure_tables import Names, column, matrix, shortened, slug, written
from hogwild.lab.report.plotly_charts import edges, map_scale, scales, spread_of
from hogwild.lab.report_model import Chart, Map, Report, Series, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hogwild.data.csr import Array

_MARKERS_SHOWN = 14
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": LIGHT["muted"],
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LIGHT["grid"],
    "hatch.color": LIGHT["paper"],
    "legend.frameon": False,
    "svg.hashsalt": "hogwild",  # fixed salt, so that the same report gives the same file
}


def save_figures(report: Report, folder: str | Path) -> tuple[Path, ...]:
    """Write each chart and map as PNG and SVG, named by its section and title, and return the files.

    >>> import tempfile
    >>> from hogwild.lab.report_model import Section
    >>> chart = Chart("Loss", "epoch", "loss", (Series("sgd", [1, 2], [0.5, 0.25]),))
    >>> section = Section("rules", "Rules", "Which rule is best?", (), (chart,), ())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [file.name for file in save_figures(Report("Report", (section,), "today", {}, {}), folder)]
    ['rules-loss.png', 'rules-loss.svg']
    """
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError("Saving figures", "matplotlib", "lab") from None
    folder, names, written_files = Path(folder), Names(), []
    folder.mkdir(parents=True, exist_ok=True)
    for section in report.sections:
        for part in section.parts:
            if isinstance(part, Table):
                continue
            name = names(f"{section.name} {slug(part.title)}")
            with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
                # Matplotlib draws a character that the font lacks as a box, which needs no warning.
                warnings.filterwarnings("ignore", "Glyph .* missing")
                figure = draw(part)
                for kind in ("png", "svg"):
                    written_files.append(folder / f"{name}.{kind}")
                    write_file(written_files[-1], _content(figure, kind))
    return tuple(written_files)


def draw(part: Chart | Map) -> Figure:
    """Draw a chart or a map without pyplot, which keeps figures in global state and selects a window system."""
    from matplotlib.figure import Figure

    lines = 0 if isinstance(part, Map) else _legend_lines(part)
    figure = Figure(figsize=(6.4, 4.0 + 0.19 * lines), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(_wrapped(part.title, 60), loc="left")
    axes.set_xlabel(_wrapped(part.x, 70))
    axes.set_ylabel(_wrapped(part.y, 45))
    if isinstance(part, Map):
        _draw_map(figure, axes, part)
    else:
        _draw_chart(figure, axes, part)
    return figure


def _draw_chart(figure: Figure, axes: Axes, chart: Chart) -> None:
    x_scale, y_scale = scales(chart)
    every = [x for one in chart.series for x in column(one.x)]
    names = list(dict.fromkeys(map(written, every)))
    _lay_out(axes, "x", x_scale, names, every)
    _lay_out(axes, "y", y_scale)
    bars = [index for index, one in enumerate(chart.series) if one.style == "bars"]
    width = 0.8 * _gap(every, x_scale) / max(1, len(bars))
    for index, one in enumerate(chart.series):
        xs = [names.index(written(x)) for x in column(one.x)] if x_scale == "category" else column(one.x)
        shift = (bars.index(index) - (len(bars) - 1) / 2) * width if index in bars else 0.0
        _draw_series(axes, one, index, [math.nan if x is None else x + shift for x in xs], width, y_scale == "log")
    if len(chart.series) > 1:
        figure.legend(loc="outside lower center", ncols=_legend_columns(chart))


def _draw_series(axes: Axes, one: Series, index: int, xs: list[float], width: float, log: bool) -> None:
    seen = look(index)
    ink, ys = LIGHT_SERIES[seen.colour], _floats(column(one.y))
    # The leading space keeps the entry: Matplotlib leaves names with a leading underscore out of the legend.
    name = " " + _clean(one.name, 60)
    spread = None if one.spread is None else spread_of(one)
    common: dict[str, Any] = {"color": ink, "label": name}
    if one.style == "bars":
        hatch = seen.pattern.matplotlib or None
        axes.bar(xs, ys, width, yerr=spread, hatch=hatch, capsize=2, ecolor=LIGHT["ink"], **common)
        axes.grid(visible=False, axis="x")
    elif one.style == "points":
        axes.errorbar(xs, ys, yerr=spread, fmt=seen.marker.matplotlib, markersize=5, capsize=2, elinewidth=1, **common)
    else:
        if spread is not None:
            low, high = edges(one, log=log)
            axes.fill_between(xs, _floats(low), _floats(high), color=ink, alpha=0.2, linewidth=0)
        if one.style == "dashed":
            axes.plot(xs, ys, linestyle=(0, tuple(length / 1.8 for length in seen.dash)), linewidth=1.8, **common)
        else:
            often = max(1, len(xs) // _MARKERS_SHOWN)
            axes.plot(xs, ys, linewidth=1.8, marker=seen.marker.matplotlib, markersize=5, markevery=often, **common)


def _draw_map(figure: Figure, axes: Axes, part: Map) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm
    from matplotlib.patheffects import Normal, Stroke

    x_scale, y_scale = map_scale(part, part.xs), map_scale(part, part.ys)
    xs, ys = column(part.xs), column(part.ys)
    rows = [_floats(row) for row in matrix(part.values)]
    log = part.log and any(value > 0 for row in rows for value in row)
    if log:
        rows = [[value if value > 0 else math.nan for value in row] for row in rows]
    how: dict[str, Any] = {"cmap": SCALE.lower(), "norm": LogNorm() if log else None}
    axes.grid(visible=False)
    across, down = _centres(xs, x_scale), _centres(ys, y_scale)
    if part.contours and min(len(xs), len(ys)) > 1:
        filled: Any = axes.contourf(across, down, rows, levels=_levels(rows, log), **how)
        axes.contour(across, down, rows, levels=_levels(rows, log), colors=LIGHT["paper"], linewidths=0.4, alpha=0.6)
    else:
        filled = axes.pcolormesh(_borders(across, x_scale), _borders(down, y_scale), rows, **how)
    _lay_out(axes, "x", x_scale, [written(x) for x in xs], xs)
    _lay_out(axes, "y", y_scale, [written(y) for y in ys], ys)
    figure.colorbar(ScalarMappable(filled.norm, filled.cmap), ax=axes, label=_wrapped(part.unit, 45))
    if part.path is not None:
        along, up = (_floats(column(side)) for side in part.path)
        outline = [Stroke(linewidth=3.2, foreground="black"), Normal()]
        axes.plot(along, up, color="white", linewidth=1.6, path_effects=outline)
        for at, marker, size in ((0, "o", 7), (-1, "*", 11)):
            axes.plot(along[at:][:1], up[at:][:1], marker, color="white", markeredgecolor="black", markersize=size)


def _lay_out(axes: Axes, side: str, scale: Scale, names: Sequence[str] = (), values: Sequence[Any] = ()) -> None:
    axis = axes.xaxis if side == "x" else axes.yaxis
    if scale == "log":
        (axes.set_xscale if side == "x" else axes.set_yscale)("log", nonpositive="mask")
        if ticks := few_ticks(values):
            axis.set_ticks(ticks, [written(tick) for tick in ticks])
            axis.set_ticks([], minor=True)
    elif scale == "category":
        turned = 30 if side == "x" and sum(len(shortened(name, 24)) for name in names) > 70 else 0
        how: dict[str, Any] = {"rotation": turned, "ha": "right"} if turned else {}
        axis.set_ticks(range(len(names)), [_clean(name, 24) for name in names], **how)


def _centres(values: list[Any], scale: Scale) -> list[float]:
    return [float(at) for at in range(len(values))] if scale == "category" else [float(value) for value in values]


def _borders(centres: list[float], scale: Scale) -> list[float]:
    """Return the borders of cells, half-way between their centres.

    >>> _borders([1.0, 2.0, 3.0], "linear"), _borders([1.0, 4.0], "log")
    ([0.5, 1.5, 2.5, 3.5], [0.5, 2.0, 8.0])
    """
    places = [math.log(centre) for centre in centres] if scale == "log" else centres
    if len(places) == 1:
        places = [places[0] - 0.5, places[0] + 0.5]
    else:
        between = [(earlier + later) / 2 for earlier, later in itertools.pairwise(places)]
        places = [2 * places[0] - between[0], *between, 2 * places[-1] - between[-1]]
    return [math.exp(place) for place in places] if scale == "log" else places


def _levels(rows: list[list[float]], log: bool) -> Array:
    import numpy as np

    known = [value for row in rows for value in row if math.isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    if low == high:
        high = low + (abs(low) or 1.0)
    return np.geomspace(low, high, 24) if log else np.linspace(low, high, 24)


def _gap(values: list[Any], scale: Scale) -> float:
    """Return the width that is free for the bars at one position."""
    known = sorted({value for value in values if is_number(value)})
    if scale == "category" or len(known) < 2:
        return 1.0
    return float(min(later - earlier for earlier, later in itertools.pairwise(known)))


def _floats(values: Sequence[Any]) -> list[float]:
    return [math.nan if value is None else float(value) for value in values]


def _legend_columns(chart: Chart) -> int:
    longest = max(len(one.name) for one in chart.series)
    return max(1, min(len(chart.series), 4, 90 // (min(longest, 60) + 8)))


def _legend_lines(chart: Chart) -> int:
    return math.ceil(len(chart.series) / _legend_columns(chart)) if len(chart.series) > 1 else 0


def _wrapped(text: str, width: int) -> str:
    return "\n".join(textwrap.wrap(_clean(text, 2 * width), width))


def _clean(text: str, longest: int = 80) -> str:
    """Return a text without characters that XML forbids, and with dollar signs escaped, which would begin a formula."""
    return "".join(letter for letter in shortened(text, longest) if letter.isprintable()).replace("$", r"\$")


def _content(figure: Figure, kind: str) -> bytes:
    file = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    figure.savefig(file, format=kind, dpi=200, metadata=metadata)
    return file.getvalue()
