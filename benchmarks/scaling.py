"""How much sooner several workers come to the loss that one comes to, for each way of sharing the parameters."""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import hogwild
from benchmarks import results
from benchmarks.kinds import LARGE, have_compiled, made, shape
from benchmarks.plots import plot_scaling

EPOCHS, MOST_EPOCHS = 3, 10  # of one worker, which set the target; that others may take to it
L2, ROUNDS, SECONDS = 1e-6, 5, 210  # rounds are cut short when so many seconds have gone by
STEPS = (0.25, 0.5, 1.0, 2.0)  # times the step that a sample suggests: one worker's best is everybody's
BUFFERED = "buffered (the default)"
STRATEGIES = {
    BUFFERED: hogwild.Hogwild,
    "textbook": lambda workers: hogwild.Hogwild(workers, buffer=0),
    "locked": hogwild.Locked,
    "round-robin": hogwild.RoundRobin,
}
SLOW = ("locked", "round-robin")  # so slow that one round of them is enough


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
        budget = hogwild.Budget(epochs=MOST_EPOCHS, target=self.target)
        run = hogwild.minimise(self.problem, self.rule, hogwild.Constant(self.step), strategy, budget=budget)
        self.noted = _buffers(run)
        return crossing(run, self.target)

    def turn(self, workers: list[int]) -> None:
        """One worker, then every strategy with every number of workers."""
        self.alone = self.run(hogwild.Serial())
        for name, strategy in STRATEGIES.items():
            for n in workers:
                found = self.ratios.setdefault((name, n), [])
                if not found or name not in SLOW:
                    found.append(self.alone / self.run(strategy(n)))
                    self.notes[name, n] = self.noted

    noted: str = ""

    def speed_up(self, name: str, workers: int) -> float:
        return statistics.median(self.ratios[name, workers])


def crossing(run: Any, target: float) -> float:
    """When a run's loss fell to the target: between the ends of two epochs on the straight line, which is late rather
    than early, because losses fall ever more slowly. The loss at the start is above any target.

    >>> from types import SimpleNamespace as Space
    >>> start = {"event": "training", "loss": 0.7}
    >>> history = [{"seconds": 1.0, "loss": 0.5}, {"seconds": 2.0, "loss": 0.4}]
    >>> crossing(Space(events=[start], history=history), 0.45), crossing(Space(events=[start], history=history), 0.3)
    (1.5, inf)
    """
    began = next(event["loss"] for event in run.events if event["event"] == "training")
    points = [(0.0, began), *((record["seconds"], record["loss"]) for record in run.history)]
    for (t0, before), (t1, after) in pairwise(points):
        if after <= target:
            return float(t0 + (t1 - t0) * (before - target) / (before - after))
    return float("inf")


def course(data: Any, rule: str) -> Course:
    """Choose the step with which one worker comes furthest, and see what loss it comes to."""
    problem = hogwild.Linear(data, "logistic", l2=L2)
    chosen = hogwild.minimise(problem, rule, "constant", "serial", budget=EPOCHS)
    suggested = next(event["step"] for event in chosen.events if event["event"] == "step chosen")
    tried = {}
    for step in (factor * suggested for factor in STEPS):
        tried[step] = hogwild.minimise(problem, rule, hogwild.Constant(step), "serial", budget=EPOCHS)
    best = min(tried, key=lambda step: tried[step].history[-1]["loss"])
    have_compiled(problem, rule)
    return Course(problem, rule, best, tried[best].history[-1]["loss"], tried[best].seconds)


def _buffers(run: Any) -> str:
    """Whether there were buffers, by the run's events."""
    return "b" if any(event["event"] == "buffers" for event in run.events) else ""


def rows_of(task: str, found: Course, workers: list[int]) -> list[list[str]]:
    rows = []
    for name in STRATEGIES:
        rows.append([task, name, *(cell(found.ratios[name, n]) + found.notes[name, n] for n in workers)])
    return rows


def cell(ratios: list[float]) -> str:
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
    rounds = 0
    while rounds < (1 if quick else ROUNDS) and (rounds == 0 or time.monotonic() - started < SECONDS):
        for task, found in courses.items():
            if rounds and time.monotonic() - started > SECONDS:
                break
            found.turn(workers)
            print(f"round {rounds + 1}, {task}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
        rounds += 1
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
            f"How many times sooner than one worker (Serial) the loss is reached that it has after {EPOCHS} epochs;",
            f"training alone, without measuring the loss. Median (least to most) of up to {ROUNDS} turns (one where it",
            f"is slow). Given up after {MOST_EPOCHS} epochs. b: with buffers.",
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


if __name__ == "__main__":
    main()
