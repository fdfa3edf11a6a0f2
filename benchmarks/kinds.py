"""The three kinds of data that speed is measured on, in memory, by how many cores there are to keep busy."""

from __future__ import annotations

import time
from typing import Any

import hogwild
from benchmarks.results import cores
from hogwild.data.generate import kind

LARGE: dict[str, dict[str, Any]] = {
    "rcv1": {"rows": 800_000},
    "clicks": {"rows": 1_000_000, "features": 4_000_000},
    "dense": {"rows": 120_000},
}
COMPILED_SECONDS = 20  # after which a loop of several workers is compiled
MANY = 8  # cores, from which on the data is large


def made(name: str, quick: bool = False) -> hogwild.data.InMemoryDataset:
    """Rows of a kind, visited as those of a file are: in a random order (they are drawn so), by blocks."""
    options = dict(LARGE[name])
    options["rows"] //= 200 if quick else 1 if cores() >= MANY else 4
    return hogwild.data.InMemoryDataset(kind(name, **options).rows, shuffled=True, name=f"{name}-like")


def have_compiled(problem: Any, rule: Any = "adagrad", workers: int = 2) -> None:
    """Have the loop of several workers compiled: it is otherwise when a run has lasted long enough to repay it."""
    if workers > 1:
        hogwild.minimise(problem, rule, hogwild.Constant(1e-3), hogwild.Hogwild(workers, buffer=512), budget=1)


def have_default_compiled(problem: Any, workers: int) -> None:
    """Train with default arguments until all workers do, or until it is clear that they do not pay."""
    have_compiled(problem, workers=workers)
    started, alone = time.monotonic(), workers > 1
    while alone and time.monotonic() - started < COMPILED_SECONDS:
        run = hogwild.minimise(problem, strategy=hogwild.Hogwild(workers), budget=20)
        replicas = any(event["event"] == "replicas" for event in run.events)
        alone = replicas and run.history[-1]["workers_used"] == 1


def shape(data: Any) -> str:
    """A set in words."""
    return f"{data.name}: {data.n_rows:,} rows x {data.n_features:,} features, {data.nonzeros / data.n_rows:.0f} a row"
