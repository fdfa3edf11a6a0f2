"""Factorisation machines on click-like rows: the time to the held-out loss of all cores."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial
from typing import Any

import hogwild
from benchmarks import results
from benchmarks.whole_fit import timed
from hogwild.data.generate import kind
from hogwild.data.in_memory import InMemoryDataset

ROWS, FEATURES, FIELDS = 1_000_000, 4_000_000, 40
HELD_OUT = 100_000
BUDGETS = (1, 2, 3, 4, 6, 8, 12)
ON_CORES = 1  # epochs of all cores, whose held-out loss is the target: it rises in later ones
TURNS = 5
HEAD = ["model", "way", "epochs", "training, s", "thousand rows/s", "whole call, s", "held-out loss"]


def models(quick: bool) -> Iterator[tuple[str, Any, Any]]:
    """Each model with its problem and held-out rows."""
    smaller = 500 if quick else 1
    rows = kind("clicks", rows=(ROWS + HELD_OUT) // smaller, features=FEATURES // smaller, nonzeros=FIELDS).rows
    last = ROWS // smaller
    training = InMemoryDataset(rows[:last], shuffled=True, name="clicks")
    test = InMemoryDataset(rows[last:], shuffled=True, name="held out")
    yield "FM, rank 8", hogwild.FactorisationMachine(training, rank=8), test


def lines(quick: bool) -> list[list[str]]:
    """All cores and the GPU."""
    cores, found = results.cores(), []
    for name, problem, test in models(quick):

        def run(epochs: int, problem: Any = problem, test: Any = test, **how: Any) -> Any:
            return hogwild.minimise(problem, "adagrad", budget=epochs, test=test, evaluate_every_epoch=False, **how)

        threads, gpu = {"strategy": hogwild.Hogwild(cores)}, {"runtime": hogwild.Cuda()}
        run(1, **threads)
        run(1, **gpu)
        on_cores = [timed(partial(run, ON_CORES, **threads)) for _ in range(TURNS)]
        target = statistics.median(one.result["test_loss"] for one, _ in on_cores)
        found.append(_line(name, f"{cores} cores", on_cores, ON_CORES, problem))
        for epochs in BUDGETS:
            on_gpu = [timed(partial(run, epochs, **gpu)) for _ in range(TURNS)]
            if statistics.median(one.result["test_loss"] for one, _ in on_gpu) <= target:
                break
        found.append(_line(name, "GPU", on_gpu, epochs, problem))
    return found


def _line(name: str, way: str, runs: list[tuple[Any, float]], epochs: int, problem: Any) -> list[str]:
    trained = statistics.median(run.seconds for run, _ in runs)
    whole, loss = (
        statistics.median(each) for each in zip(*((t, run.result["test_loss"]) for run, t in runs), strict=True)
    )
    rate = epochs * problem.data.n_rows / trained / 1e3
    return [name, way, str(epochs), f"{trained:.3f}", f"{rate:,.0f}", f"{whole:.2f}", f"{loss:.5f}"]
