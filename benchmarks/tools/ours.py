"""hogwild: the defaults of ``minimise``, with one worker and with one per core."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import hogwild
from benchmarks.kinds import have_default_compiled
from benchmarks.results import cores
from benchmarks.sets import Split
from benchmarks.tools.way import Fit, Tool, Way

STEPS = (0.5, 2.0, 0.125)  # tried where a step is given, as step sizes of other tools are


def load(split: Split) -> Any:
    return hogwild.data.open(split.npz or split.svm, reading=hogwild.data.ReadOptions(features=split.X.shape[1]))


def fit(data: Any, split: Split, loss: str, workers: int, schedule: Any, epochs: float, seed: int) -> Fit:
    started = time.perf_counter()
    run = hogwild.minimise(
        hogwild.Linear(data, loss, l2=split.l2),
        schedule=schedule,
        strategy=hogwild.Hogwild(workers),
        budget=int(epochs),
        evaluate_every_epoch=False,
        seed=seed,
    )
    seconds = time.perf_counter() - started
    note = f"{1 - run.seconds / seconds:.0%} went before and after training"
    return Fit(run.model.weights[:, 0], float(run.model.intercept[0]), seconds, note)


def ways(workers: int, data: Any, split: Split, loss: str) -> list[Way]:
    have_default_compiled(hogwild.Linear(data, loss, l2=split.l2), workers)
    return [Way("defaults", partial(fit, data, split, loss, workers, None))]


def ways_with_a_step(workers: int, data: Any, split: Split, loss: str) -> list[Way]:
    return [
        Way(f"step {step:g}", partial(fit, data, split, loss, workers, hogwild.Cosine(step=step))) for step in STEPS
    ]


def _tools() -> list[Tool]:
    """One for each number of workers; with all cores also with a step that is given, not chosen within the fit."""
    many = cores()
    counts = [many] if many == 1 else [many, 1]
    found = [
        Tool(f"hogwild, {n} worker{'s' * (n > 1)}", "hogwild", load, partial(ways, n), from_arrays=False)
        for n in counts
    ]
    given = Tool(f"hogwild, {many} workers, step given", "hogwild", load, partial(ways_with_a_step, many), False)
    return [*found, given]


TOOLS = _tools()
