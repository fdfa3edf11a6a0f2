"""hogwild: the defaults of ``minimise``, with as many workers as it finds useful, and with one."""

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


def fit(data: Any, split: Split, loss: str, workers: int | None, schedule: Any, epochs: float, seed: int) -> Fit:
    """One whole call; without a number of workers, the call finds out how many are useful."""
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


def ways(workers: int | None, data: Any, split: Split, loss: str) -> list[Way]:
    have_default_compiled(hogwild.Linear(data, loss, l2=split.l2), workers or cores())
    return [Way("defaults", partial(fit, data, split, loss, workers, None))]


def ways_with_a_step(workers: int, data: Any, split: Split, loss: str) -> list[Way]:
    return [
        Way(f"step {step:g}", partial(fit, data, split, loss, workers, hogwild.Cosine(step=step))) for step in STEPS
    ]


def _tools() -> list[Tool]:
    """The defaults, one worker, and all cores with a step that is given, not chosen within the fit."""
    many = cores()
    counts = {"hogwild": None} if many == 1 else {"hogwild": None, "hogwild, 1 worker": 1}
    found = [Tool(name, "hogwild", load, partial(ways, n), from_arrays=False) for name, n in counts.items()]
    given = Tool(f"hogwild, {many} workers, step given", "hogwild", load, partial(ways_with_a_step, many), False)
    return [*found, given]


TOOLS = _tools()
