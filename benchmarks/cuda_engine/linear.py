"""Linear models to within 1% of the optimum: on all cores, on a GPU by every rule, and by what PyTorch has."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import hogwild
from benchmarks import results
from benchmarks.cuda_engine import torch_linear
from benchmarks.kinds import LARGE, have_default_compiled
from benchmarks.sets import _matrix
from benchmarks.whole_fit import timed
from hogwild.data.generate import kind

WITHIN = 1.01
BUDGETS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20)
LONG = 40  # epochs that come to the optimum
TURNS = 9
RULES = ("adagrad", "ftrl", "sgd", "momentum", "adam")
L2 = 1e-6
HEAD = ["set", "way", "epochs", "training, ms", "an epoch, ms", "whole call, ms", "objective / optimum"]


@dataclass(frozen=True, eq=False)
class Task:
    """Arrays of a set."""

    name: str
    X: Any
    y: Any

    def problem(self) -> hogwild.Linear:
        return hogwild.Linear((self.X, self.y), "logistic", l2=L2)

    def on_gpu(self, problem: Any, rule: str, epochs: int) -> Any:
        return hogwild.minimise(problem or self.problem(), rule, runtime=hogwild.Cuda(), budget=epochs)

    def on_cores(self, workers: int, epochs: int) -> Any:
        return hogwild.minimise(self.problem(), strategy=hogwild.Hogwild(workers), budget=epochs)


def tasks(quick: bool, names: tuple[str, ...] = ("rcv1", "clicks", "dense")) -> Iterator[Task]:
    for name in names:
        options = dict(LARGE[name])
        rows = kind(name, **{**options, "rows": options["rows"] // (200 if quick else 1)}).rows
        X = rows.values.reshape(len(rows.labels), -1) if name == "dense" else _matrix(rows)
        yield Task(f"{name}-like, {X.shape[0]:,} x {X.shape[1]:,}", X, rows.labels.astype(float))


def lines_of(task: Task, turns: int, rules: tuple[str, ...] = RULES) -> list[list[str]]:
    """One line for each way to train a linear model."""
    workers, resident = results.cores(), task.problem()
    have_default_compiled(task.problem(), workers)
    best = min(task.on_cores(workers, LONG).objective, task.on_gpu(resident, "adagrad", LONG).objective)
    calls: dict[str, Callable[[int], Any]] = {f"{workers} cores": partial(task.on_cores, workers)}
    for rule in rules:
        calls[f"GPU, {rule}"] = partial(task.on_gpu, None, rule)
        calls[f"GPU, {rule}, rows there before"] = partial(task.on_gpu, resident, rule)
    found = {}
    for name, call in calls.items():
        fits = (epochs for epochs in BUDGETS if call(epochs).objective <= WITHIN * best)
        found[name] = next(fits, None)
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    training: dict[str, list[float]] = {name: [] for name in calls}
    last = {}
    for _ in range(turns):
        for name, epochs in found.items():
            if epochs is not None:
                last[name], taken = timed(partial(calls[name], epochs))
                seconds[name].append(taken)
                training[name].append(last[name].seconds)
    lines = []
    for name, epochs in found.items():
        if epochs is None:
            lines.append([task.name, name, "not reached", "", "", "", ""])
            continue
        trained = 1e3 * statistics.median(training[name])
        lines.append([
            task.name, name, str(epochs), f"{trained:.1f}", f"{trained / epochs:.1f}",
            f"{1e3 * statistics.median(seconds[name]):.0f}", f"{last[name].objective / best:.4f}",
        ])  # fmt: skip
    for way in torch_linear.ways(task.X, task.y, L2, WITHIN * best):
        lines.append(
            [task.name, way.name, way.steps, f"{1e3 * way.seconds:.1f}", "", "", f"{way.objective / best:.4f}"]
        )
    return lines
