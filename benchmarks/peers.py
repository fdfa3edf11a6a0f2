"""How long each tool takes to the same objective, and to the same held-out accuracy, on the same data in the same run.

Every tool has several ways (solvers, step sizes, threads). First the least effort with which each way comes to a target
is looked for, and of each tool the fastest way is kept; then what was kept is fitted anew in turns, which is what the
tables show. The clock runs during a fit alone: loading is reported beside, judging is for nobody.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import results, sets
from benchmarks.contest import FEW_ROUNDS, LIMIT, POINTS, ROUNDS, TARGETS, Contest, Entry, entries, ratios, say
from benchmarks.objective import LOSSES
from benchmarks.plots import plot_peers
from benchmarks.search import Gap
from benchmarks.sets import Split
from benchmarks.tools import Tool, installed
from benchmarks.tools.way import timed


def figures(entry: Entry, ours: Entry, target: str, gap: Gap) -> list[str]:
    """Cells of a table: settings, seconds, times ours."""
    if target not in entry.kept:
        return ["", f"not within {LIMIT:g} s" if entry.trials else "no such loss", ""]
    (trials, rung), timed_outcomes = entry.kept[target], entry.timed[target]
    way, missed = trials.way, sum(gap(outcome) > 0 for outcome in timed_outcomes)
    settings = f"{way.name}; {way.ladder[rung]:g} {way.effort}"
    seconds = results.span([o.seconds for o in timed_outcomes], ".3f")
    seconds += f", missed in {missed} of {len(timed_outcomes)}" * bool(missed)
    against = results.span(ratios(entry, ours, target), ".2f", "x") if target in ours.kept else ""
    return [settings, seconds, against]


def report(contest: Contest, targets: dict[str, Gap]) -> list[str]:
    """The tables of one set and one loss."""
    ours, lines = contest.entries[0], [f"## {contest.split}, {contest.loss} loss", ""]
    for target, gap in targets.items():
        head = ["tool", "settings kept", f"seconds {TARGETS[target]}", "times ours", "loading, s"]
        rows = [
            [entry.tool.name, *figures(entry, ours, target, gap), f"{entry.loading:.2f}"] for entry in contest.entries
        ]
        lines += [*results.table(head, rows), ""]
    notes = {
        entry.tool.name: entry.timed["objective"][-1].note for entry in contest.entries if entry.timed["objective"]
    }
    lines += [f"- {name}: {note}." for name, note in notes.items() if note]
    return [*lines, ""]


def raw(contest: Contest) -> list[dict[str, Any]]:
    ours = contest.entries[0]
    return [
        {
            "set": contest.split.name,
            "loss": contest.loss,
            "tool": entry.tool.name,
            "target": target,
            "way": entry.kept[target][0].way.name if target in entry.kept else None,
            "times_ours": statistics.median(found) if (found := ratios(entry, ours, target)) else None,
            "fits": [asdict(outcome) for outcome in entry.timed[target]],
        }
        for entry in contest.entries
        for target in TARGETS
    ]  # fmt: skip


def summary(found: list[dict[str, Any]], names: list[str]) -> list[str]:
    """How many times our time each tool takes; and where a tool is faster, by how much."""
    lines: list[str] = []
    for target, what in TARGETS.items():
        tasks: dict[str, dict[str, dict[str, Any]]] = {}
        for one in found:
            if one["target"] == target:
                tasks.setdefault(f"{one['set']}, {one['loss']}", {})[one["tool"]] = one
        rows = [[task, *(_times(row[name]) for name in names)] for task, row in tasks.items()]
        lines += [f"Seconds {what}, times those of {names[0]} (above 1: slower than ours)", ""]
        lines += [*results.table(["set, loss", *names], rows), ""]
        faster = [line for task, row in tasks.items() if (line := _faster(task, row, row[names[0]]))]
        lines += [f"Where a peer is faster {what}:" if faster else f"No peer is faster {what}.", "", *faster, ""]
    return lines


def _times(one: dict[str, Any]) -> str:
    """Times ours; where ours did not come to the target, seconds; where the tool did not, nothing."""
    if not one["fits"]:
        return "-"
    return f"{one['times_ours']:.2f}x" if one["times_ours"] else f"{_seconds(one):.2f} s"


def _seconds(one: dict[str, Any]) -> float:
    return statistics.median(fit["seconds"] for fit in one["fits"])


def _faster(task: str, row: dict[str, dict[str, Any]], ours: dict[str, Any]) -> str:
    """Which tools are faster on one set and loss, by how much, and how much of our time is not training."""
    met = {name: one for name, one in row.items() if one["fits"] and not name.startswith("hogwild")}
    if not ours["fits"]:
        told = ", ".join(f"{name} in {_seconds(one):.2f} s" for name, one in met.items())
        return f"- {task}: ours does not come to it within {LIMIT:g} s; {told or 'nor does any other'}."
    ahead = sorted((one["times_ours"], name) for name, one in met.items() if one["times_ours"] < 1)
    told = ", ".join(f"{name} {1 / times:.2f} times" for times, name in ahead)
    return f"- {task}: {told} as fast. Of our time {ours['fits'][-1]['note']}." if ahead else ""


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    tools, missing = installed()
    details: list[str] = []
    found: list[dict[str, Any]] = []
    chosen: dict[str, Callable[[Path], Split]] = sets.QUICK if quick else sets.SETS
    for make in chosen.values():
        with sets.opened(make) as split:
            loaded = {tool.name: timed(lambda tool=tool: tool.load(split)) for tool in tools}  # type: ignore[misc]
            for loss in LOSSES:
                contest = Contest(split, loss, entries(tools, split, loss, loaded))
                say(f"{split}, {loss}")
                details += report(contest, contest.hold())
                found += raw(contest)
                keep(out, tools, missing, found, details)
    print((out / "peers.md").read_text())


def keep(out: Path, tools: list[Tool], missing: list[str], found: list[dict[str, Any]], details: list[str]) -> None:
    """Write down what there is so far: a run that is cut short leaves what it has measured."""
    names = [tool.name for tool in tools]
    picture = plot_peers(found, names, out)
    versions = sorted({f"{tool.package} {results.version_of(tool.package)}" for tool in tools})
    results.write(
        "peers",
        "Against other tools",
        [
            f"{', '.join(versions)}. " + " ".join([*missing, *(tool.remark for tool in tools if tool.remark)]),
            "",
            "Every tool minimises mean loss + l2/2 |w|^2. Some penalise the intercept as well, which matters less than",
            "the 1% that is allowed. The best objective is the least that any tool reached; the accuracy to reach is",
            f"within {POINTS * 100:g} points of that model's. Of each tool several settings were tried and the fastest",
            "kept, a separate one for each target; the time of that search is not counted. Ours alone chooses its step",
            "within the fit, unless the step is given. Compiled code of ours is on disk and loaded; judging is outside",
            f"the clock. Median (least to most) of {ROUNDS} fits in turns, {FEW_ROUNDS} where one takes over a second.",
            "",
            *summary(found, names),
            *([f"![]({picture})", ""] if picture else []),
            *details,
        ],
        out,
        found,
        printed=False,
    )
