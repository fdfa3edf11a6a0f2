"""Whole calls of ``minimise`` with default arguments, to within 1% of the optimum, by number of workers.

A call is timed with the making of the problem: checks of the arrays, the choice of a rule or a step, training and the
evaluation of every epoch. For each number of workers the budget is the fewest epochs with which a run comes within 1%.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import hogwild
from benchmarks import results
from benchmarks.kinds import LARGE, MANY, have_default_compiled
from benchmarks.sets import _matrix
from benchmarks.whole_fit import bigrams, timed
from hogwild.data.generate import kind

WITHIN = 1.01
BUDGETS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20)
LONG = 40  # epochs that come to the optimum
TURNS = 5
WORKERS = (1, 2, 4, 8, 16)


@dataclass(frozen=True, eq=False)
class Task:
    """Arrays of a set, and how strongly it is regularised."""

    name: str
    X: Any
    y: Any
    l2: float

    def run(self, workers: int, epochs: int) -> Any:
        problem = hogwild.Linear((self.X, self.y), "logistic", l2=self.l2)
        return hogwild.minimise(problem, strategy=hogwild.Hogwild(workers), budget=epochs)


def tasks(quick: bool) -> Iterator[Task]:
    smaller = 200 if quick else 1 if results.cores() >= MANY else 4
    for name, strengths in (("rcv1", (1e-5, 8e-8)), ("clicks", (1e-6,))):
        options = dict(LARGE[name])
        rows = kind(name, **{**options, "rows": options["rows"] // smaller}).rows
        X, y = _matrix(rows), rows.labels.astype(float)
        for l2 in strengths:
            yield Task(f"{name}-like, {len(y):,} rows, l2={l2:g}", X, y, l2)
    if not quick:
        one = bigrams(31_250)
        yield Task(f"{one.name}, l2=1e-05", one.X, one.y, 1e-5)


def lines_of(task: Task, workers: tuple[int, ...], turns: int) -> list[list[str]]:
    """One line for each number of workers."""
    best = min(task.run(count, LONG).objective for count in (1, workers[-1]))
    budgets = {}
    for count in workers:
        have_default_compiled(hogwild.Linear((task.X, task.y), "logistic", l2=task.l2), count)
        fits = (epochs for epochs in BUDGETS if task.run(count, epochs).objective <= WITHIN * best)
        budgets[count] = next(fits, None)
    seconds: dict[int, list[float]] = {count: [] for count in workers}
    training: dict[int, list[float]] = {count: [] for count in workers}
    for _ in range(turns):
        for count, epochs in budgets.items():
            if epochs is not None:
                run, taken = timed(partial(task.run, count, epochs))
                seconds[count].append(taken)
                training[count].append(run.seconds)
    alone = statistics.median(seconds[1]) if seconds[1] else float("nan")
    lines = []
    for count in workers:
        if not seconds[count]:
            lines.append([task.name, str(count), "not reached", "", "", ""])
            continue
        whole = statistics.median(seconds[count])
        lines.append([
            task.name, str(count), str(budgets[count]), f"{1e3 * whole:.0f}",
            f"{1e3 * statistics.median(training[count]):.0f}", f"{alone / whole:.2f}",
        ])  # fmt: skip
    return lines


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    workers = tuple(count for count in WORKERS if count <= max(2, results.cores()))
    lines = []
    for task in tasks(quick):
        lines += lines_of(task, workers, 2 if quick else TURNS)
        print(*(" ".join(line) for line in lines[-len(workers) :]), sep="\n", flush=True)
    head = ["set", "workers", "epochs", "whole call, ms", "training, ms", "times one worker"]
    results.write(
        "whole_minimise",
        "Whole calls of minimise",
        [
            "`minimise(Linear((X, y), l2=...), strategy=Hogwild(workers), budget=epochs)`, logistic loss, all other",
            "arguments left out: the fewest epochs that come within 1% of the optimum, milliseconds of the whole call",
            f"and of training in it, and how many times as fast as one worker. Medians of {TURNS} turns, in turn.",
            "",
            *results.table(head, lines),
        ],
        out,
    )
