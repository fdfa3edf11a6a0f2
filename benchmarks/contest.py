"""All tools on one set and one loss: the search for the least effort of each, and the fits in turns that are shown."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from benchmarks.objective import Judge
from benchmarks.reference import reference
from benchmarks.search import Gap, Outcome, Trials, least_rung
from benchmarks.sets import Split
from benchmarks.tools import Tool

CLOSE, POINTS = 1.01, 0.002  # of the best objective; less than the accuracy of the model that has it
TARGETS = {"objective": "to within 1% of the best objective", "accuracy": "to the same held-out accuracy"}
LIMIT, ROUNDS, FEW_ROUNDS = 3.0, 5, 3  # seconds that a fit may take; how often what is kept is timed, and if it is slow
SLOW = 1.0


@dataclass(eq=False)
class Entry:
    """A tool on one set and one loss."""

    tool: Tool
    loading: float
    trials: list[Trials]
    kept: dict[str, tuple[Trials, int]] = field(default_factory=dict)  # by target
    timed: dict[str, list[Outcome]] = field(default_factory=lambda: {target: [] for target in TARGETS})

    def outcomes(self) -> list[Outcome]:
        return [outcome for trials in self.trials for outcome in trials.made.values()]

    def kept_ways(self) -> str:
        told = [
            f"{t.way.name}, {t.way.ladder[rung]:g}, {t.at(rung, 0).seconds:.3f} s" for t, rung in self.kept.values()
        ]
        return "; ".join(told) or "nothing"

    def choose(self, target: str, gap: Gap) -> None:
        """Keep the way that meets a target in the least time; one that is slower already is not followed further."""
        best, self.kept = math.inf, {name: kept for name, kept in self.kept.items() if name != target}
        for trials in self.trials:
            rung = least_rung(trials, gap, min(LIMIT, best))
            if rung is not None:
                best, self.kept[target] = trials.at(rung, 0).seconds, (trials, rung)


@dataclass(frozen=True, eq=False)
class Contest:
    """All tools on one set and one loss."""

    split: Split
    loss: str
    entries: list[Entry]

    def hold(self) -> dict[str, Gap]:
        """Search until nobody finds a better objective, then time in turns. Returns the targets."""
        judge = Judge(self.split, self.loss)
        best = Outcome(0.0, *judge(*reference(self.split, self.loss)))
        while True:
            targets = targets_by(best)
            for entry in self.entries:
                started = time.perf_counter()
                for target, gap in targets.items():
                    entry.choose(target, gap)
                seconds = time.perf_counter() - started
                say(f"  {seconds:5.1f} s to search {entry.tool.name}: {entry.kept_ways()}")
            found = min((o for entry in self.entries for o in entry.outcomes()), key=lambda o: o.objective)
            if found.objective > best.objective * 0.9995:
                break
            best = found
        say("  in turns")
        for turn in range(ROUNDS):
            for entry in self.entries:
                for target, (trials, rung) in entry.kept.items():
                    if turn < FEW_ROUNDS or trials.at(rung, 0).seconds < SLOW:
                        entry.timed[target].append(trials.fresh(rung, 100 + turn))
        return targets


def say(what: str) -> None:
    """Tell how far it is, beside the report."""
    print(what, file=sys.stderr, flush=True)


def targets_by(best: Outcome) -> dict[str, Gap]:
    """How far an outcome is from each target, given the outcome with the best objective of all."""
    return {
        "objective": lambda o: o.objective / best.objective - CLOSE,
        "accuracy": lambda o: best.accuracy - POINTS - o.accuracy,
    }


def entries(tools: list[Tool], split: Split, loss: str, loaded: dict[str, tuple[Any, float]]) -> list[Entry]:
    """Each tool with its ways of fitting a loss, warm: whatever is done once has been done."""
    found, judge = [], Judge(split, loss)
    for tool in tools:
        data, seconds = loaded[tool.name]
        trials = [Trials(way, judge) for way in tool.ways(data, split, loss)]
        for one in trials[:1]:
            one.way.fit(one.way.ladder[0], 0)
        found.append(Entry(tool, seconds + split.reading * tool.from_arrays, trials))
    return found


def ratios(entry: Entry, ours: Entry, target: str) -> list[float]:
    """How many times our time a tool took, turn by turn."""
    pairs = zip(entry.timed[target], ours.timed[target], strict=False)
    return [theirs.seconds / mine.seconds for theirs, mine in pairs]
