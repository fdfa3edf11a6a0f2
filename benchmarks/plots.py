"""Pictures of the tables, where matplotlib is installed (``pip install 'hogwild[bench]'``)."""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def plot_peers(found: Sequence[dict[str, Any]], names: Sequence[str], out: Path) -> str | None:
    """Bars: how many times our time each tool takes to the objective, on a logarithmic scale."""
    pyplot = _pyplot()
    if pyplot is None:
        return None
    rows = [one for one in found if one["target"] == "objective" and one["times_ours"]]
    tasks = list(dict.fromkeys((one["set"], one["loss"]) for one in rows))
    figure, axes = pyplot.subplots(figsize=(9, 0.5 + 0.9 * len(tasks)), layout="constrained")
    height = 0.8 / (len(names) - 1)
    for number, name in enumerate(names[1:]):
        mine = {(one["set"], one["loss"]): one["times_ours"] for one in rows if one["tool"] == name}
        places = [k + number * height for k, task in enumerate(tasks) if task in mine]
        axes.barh(places, [mine[task] - 1 for task in tasks if task in mine], height, left=1, label=name)
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks([k + 0.4 for k in range(len(tasks))], [f"{where}, {loss}" for where, loss in tasks])
    axes.invert_yaxis()
    axes.set_xlabel(
        f"seconds to within 1% of the best objective, times those of {names[0]} (none: not within the limit)"
    )
    axes.xaxis.set_major_formatter(lambda times, _: f"{times:g}x")
    figure.legend(fontsize=7, loc="outside lower center", ncols=3)
    return _saved(figure, out, "peers")


def plot_scaling(curves: dict[str, dict[str, dict[int, float]]], out: Path) -> str | None:
    """One panel for each task: the speed-up of every strategy over the number of workers."""
    pyplot = _pyplot()
    if pyplot is None:
        return None
    columns = 3
    figure, panels = pyplot.subplots(
        -(-len(curves) // columns), columns, figsize=(11, 3.2 * -(-len(curves) // columns)), layout="constrained",
        squeeze=False,
    )  # fmt: skip
    for axes, (task, strategies) in zip(panels.flat, curves.items(), strict=False):
        most = max(max(curve, default=1) for curve in strategies.values())
        axes.plot([1, most], [1, most], color="lightgrey", label="linear")
        for strategy, curve in strategies.items():
            reached = {workers: times for workers, times in curve.items() if times > 0}
            axes.plot(list(reached), list(reached.values()), marker="o", label=strategy)
        for scale, axis in ((axes.set_xscale, axes.xaxis), (axes.set_yscale, axes.yaxis)):
            scale("log", base=2)
            axis.set_major_formatter(lambda number, _: f"{number:g}")
        axes.set_title(task, fontsize=9)
        axes.set_xlabel("workers")
        axes.set_ylabel("times one worker")
    panels.flat[0].legend(fontsize=7)
    return _saved(figure, out, "scaling")


def plot_large_batch(curves: dict[str, list[list[float]]], out: Path) -> str | None:
    """Held-out accuracy over epochs: the mean of all seeds, and from the worst to the best of them."""
    pyplot = _pyplot()
    if pyplot is None:
        return None
    figure, axes = pyplot.subplots(figsize=(8, 4.2), layout="constrained")
    for name, runs in curves.items():
        # An epoch that was over before the one before it was measured has no figure.
        known = [[value for value in values if not math.isnan(value)] for values in zip(*runs, strict=True)]
        epochs = [number for number, values in enumerate(known, 1) if values]
        drawn = axes.plot(epochs, [statistics.mean(values) for values in known if values], label=name)
        axes.fill_between(
            epochs, [min(values) for values in known if values], [max(values) for values in known if values],
            color=drawn[0].get_color(), alpha=0.15, linewidth=0,
        )  # fmt: skip
    axes.set_ylim(90, 100)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("epochs")
    axes.set_ylabel("held-out accuracy, %")
    axes.legend(fontsize=8, loc="lower right")
    return _saved(figure, out, "large_batch")


def plot_replay(found: dict[str, tuple[dict[int, float], dict[int, float]]], out: Path) -> str | None:
    """One panel for each setting: the shares of staleness that a run had, and that its replay predicts."""
    pyplot = _pyplot()
    if pyplot is None:
        return None
    columns = 2
    lines = -(-len(found) // columns)
    figure, panels = pyplot.subplots(lines, columns, figsize=(9, 2.6 * lines), layout="constrained", squeeze=False)
    for axes, (setting, pair) in zip(panels.flat, found.items(), strict=False):
        for number, (name, shares) in enumerate(zip(("on threads", "replayed"), pair, strict=True)):
            axes.bar([delay + 0.4 * number - 0.2 for delay in shares], list(shares.values()), 0.4, label=name)
        axes.set_title(setting, fontsize=9)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel("staleness, updates", fontsize=8)
        axes.set_ylabel("share of pushes", fontsize=8)
    for axes in list(panels.flat)[len(found) :]:
        axes.set_visible(False)
    panels.flat[0].legend(fontsize=8)
    return _saved(figure, out, "replay")


def _pyplot() -> Any:
    try:
        import matplotlib as mpl
    except ImportError:
        print("No plots: matplotlib is not installed (the extra 'bench' has it).", file=sys.stderr)
        return None
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "hogwild"  # the same figures make the same file
    mpl.rcParams["svg.fonttype"] = "none"  # text stays text, which is smaller
    from matplotlib import pyplot

    return pyplot


def _saved(figure: Any, out: Path, name: str) -> str:
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / f"{name}.svg", metadata={"Date": None})
    return f"{name}.svg"
