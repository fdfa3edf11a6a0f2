"""Factorisation machines on click-like rows: the time to the held-out loss of all cores."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial
from typing import Any

import hogwild
from benchmarks import results
from benchmarks.whole_fit import timed
from hogwild.data.generate import interactions
from hogwild.data.in_memory import InMemoryDataset

ROWS, FEATURES, FIELDS = 1_000_000, 4_000_000, 40
HELD_OUT = 100_000
BUDGETS = (1, 2, 3, 4, 6, 8, 12)
ON_CORES = 3  # epochs of all cores, whose held-out loss is the target
HEAD = ["model", "way", "epochs", "training, s", "thousand rows/s", "whole call, s", "held-out loss"]


def models(quick: bool) -> Iterator[tuple[str, Any, Any]]:
    """Each model with its problem and held-out rows."""
    smaller = 500 if quick else 1
    rows = interactions((ROWS + HELD_OUT) // smaller, FEATURES // smaller, fields=FIELDS).rows
    last = ROWS // smaller
    training = InMemoryDataset(rows[:last], shuffled=True, name="clicks with fields")
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
        one, taken = timed(partial(run, ON_CORES, **threads))
        target = one.result["test_loss"]
        found.append(_line(name, f"{cores} cores", one, ON_CORES, problem, taken))
        for epochs in BUDGETS:
            one, taken = timed(partial(run, epochs, **gpu))
            if one.result["test_loss"] <= target:
                break
        again = [timed(partial(run, epochs, **gpu)) for _ in range(2)]
        taken = statistics.median([taken, *(seconds for _, seconds in again)])
        found.append(_line(name, "GPU", again[-1][0], epochs, problem, taken))
    return found


def _line(name: str, way: str, run: Any, epochs: int, problem: Any, taken: float) -> list[str]:
    rate = epochs * problem.data.n_rows / run.seconds / 1e3
    return [name, way, str(epochs), f"{run.seconds:.3f}", f"{rate:,.0f}", f"{taken:.2f}",
            f"{run.result['test_loss']:.5f}"]  # fmt: skip
