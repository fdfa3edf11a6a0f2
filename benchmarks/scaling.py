"""How much sooner several workers come to the objective that one comes to, for each way of sharing the parameters."""

from __future__ import annotations

import contextlib
import math
import statistics
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import hogwild
from benchmarks import results
from benchmarks.kinds import LARGE, have_compiled, made, shape
from benchmarks.plots import plot_scaling

EPOCHS, MOST_EPOCHS = 3, 10  # of one worker, which set the target; that others may take to it
L2, ROUNDS, SECONDS = 1e-6, 5, 150  # rounds are cut short when so many seconds have gone by
MOST_TURNS, TURN_SECONDS = 4, 0.4  # of one worker in a round, and how much of its time there should be in one
MOST_SECONDS = 390  # after which slow strategies are left out
STEPS = (0.25, 0.5, 1.0, 2.0)  # times the step that a sample suggests: one worker's best is everybody's
BUFFERED = "buffered (the default)"
STRATEGIES = {
    BUFFERED: hogwild.Hogwild,
    "textbook": lambda workers: hogwild.Hogwild(workers, buffer=0),
    "locked": hogwild.Locked,
    "round-robin": hogwild.RoundRobin,
}
SLOW = ("locked", "round-robin")  # so slow that one round of them is enough


class Reached(Exception):  # noqa: N818  (it is no error)
    """The target is met, and no more need be walked."""


@dataclass(eq=False)
class Course:
    """One kind of data and one rule: the target, the step, and the speed-ups that were found."""

    problem: Any
    rule: str
    step: float
    target: float
    alone: float  # seconds one worker took, the last time it was measured
    ratios: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    notes: dict[tuple[str, int], str] = field(default_factory=dict)

    def run(self, strategy: Any) -> float:
        """Seconds of training until the target is met; infinite if it is not."""
        told: list[Any] = []

        def look(event: Any) -> None:
            if event["event"] in ("training", "epoch", "buffers"):
                told.append(event)
            if event["event"] == "epoch" and event["objective"] <= self.target:
                raise Reached

        with contextlib.suppress(Reached):
            step = hogwild.Constant(self.step)
            hogwild.minimise(self.problem, self.rule, step, strategy, budget=MOST_EPOCHS, callbacks=[look])
        self.noted = "b" if any(event["event"] == "replicas" for event in told) else ""
        return crossing(told, self.target)

    def turns(self, workers: list[int], names: Iterable[str]) -> None:
        """One or, where they take little time, several turns: whatever else the machine does lasts longer than one."""
        for _ in range(max(1, min(MOST_TURNS, round(TURN_SECONDS / self.alone)))):
            self.turn(workers, names)

    def turn(self, workers: list[int], names: Iterable[str]) -> None:
        """One worker, then each of these strategies with every number of workers."""
        self.alone = self.run(hogwild.Serial())
        for name in names:
            for n in workers:
                self.ratios.setdefault((name, n), []).append(self.alone / self.run(STRATEGIES[name](n)))
                self.notes[name, n] = self.noted

    noted: str = ""

    def speed_up(self, name: str, workers: int) -> float:
        return statistics.median(self.ratios.get((name, workers), [math.nan]))


def crossing(told: list[Any], target: float) -> float:
    """When a run's objective fell to the target: between the ends of two epochs on the straight line, which is late
    rather than early, because objectives fall ever more slowly. At the start, with weights of zero, it is the loss.

    >>> told = [{"event": "training", "loss": 0.7}, {"event": "epoch", "seconds": 1.0, "objective": 0.5}]
    >>> told.append({"event": "epoch", "seconds": 2.0, "objective": 0.4})
    >>> crossing(told, 0.45), crossing(told, 0.3)
    (1.5, inf)
    """
    points = [(0.0, event["loss"]) for event in told if event["event"] == "training"]
    points += [(event["seconds"], event["objective"]) for event in told if event["event"] == "epoch"]
    for (t0, before), (t1, after) in pairwise(points):
        if after <= target:
            return float(t0 + (t1 - t0) * (before - target) / (before - after))
    return float("inf")


def course(data: Any, rule: str) -> Course:
    """Choose the step with which one worker comes furthest, and see what objective it comes to."""
    problem = hogwild.Linear(data, "logistic", l2=L2)
    chosen = hogwild.minimise(problem, rule, "constant", "serial", budget=EPOCHS)
    suggested = next(event["step"] for event in chosen.events if event["event"] == "step chosen")
    tried = {}
    for step in (factor * suggested for factor in STEPS):
        tried[step] = hogwild.minimise(problem, rule, hogwild.Constant(step), "serial", budget=EPOCHS)
    best = min(tried, key=lambda step: tried[step].objective)
    have_compiled(problem, rule)
    return Course(problem, rule, best, tried[best].objective, tried[best].seconds)


def rows_of(task: str, found: Course, workers: list[int]) -> list[list[str]]:
    rows = []
    for name in STRATEGIES:
        cells = (cell(found.ratios.get((name, n), [])) + found.notes.get((name, n), "") for n in workers)
        rows.append([task, name, *cells])
    return rows


def cell(ratios: list[float]) -> str:
    if not ratios:
        return "not measured"
    return results.span(ratios, ".2f", "x") if statistics.median(ratios) else "not reached"


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    started, cores = time.monotonic(), results.cores()
    workers = [n for n in (1, 2, 4, 8, 16) if n <= max(2, cores)]
    courses: dict[str, Course] = {}
    shapes = []
    for name in LARGE:
        data = made(name, quick)
        shapes.append(shape(data))
        for rule in ("sgd", "adagrad"):
            courses[f"{data.name}, {rule}"] = course(data, rule)
    rounds, fast = 0, [name for name in STRATEGIES if name not in SLOW]
    while rounds < (1 if quick else ROUNDS) and (rounds == 0 or time.monotonic() - started < SECONDS):
        for found in courses.values():
            found.turns(workers, fast)
        rounds += 1
        print(f"round {rounds}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    for task, found in courses.items():
        if time.monotonic() - started < MOST_SECONDS:
            found.turn(workers, SLOW)
        print(f"{task}, {', '.join(SLOW)}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    picture = plot_scaling(
        {
            task: {name: {n: found.speed_up(name, n) for n in workers} for name in STRATEGIES}
            for task, found in courses.items()
        },
        out,
    )
    times = ", ".join(f"{task} {found.alone:.2f} s" for task, found in courses.items())
    results.write(
        "scaling",
        "Many cores",
        [
            f"Logistic loss, l2={L2:g}, the constant step with which one worker comes furthest. {'; '.join(shapes)}.",
            "",
            "How many times sooner than one worker (Serial) the objective is reached that it has after",
            f"{EPOCHS} epochs; training alone, without measuring. Median (least to most) of {rounds} turns or more",
            f"(one of {' and '.join(SLOW)}). Given up after {MOST_EPOCHS} epochs. b: with buffers.",
            f"One worker's times: {times}.",
            "",
            *results.table(["data, rule", "strategy", *(f"{n} worker{'s' * (n > 1)}" for n in workers)], [
                row for task, found in courses.items() for row in rows_of(task, found, workers)
            ]),
            *(["", f"![]({picture})"] if picture else []),
        ],
        out,
        {task: {f"{name}, {n}": r for (name, n), r in found.ratios.items()} for task, found in courses.items()},
    )  # fmt: skip
