"""Strategies by messages: how fast they are simulated, and what an exchange costs on threads."""

from __future__ import annotations

import time
from operator import itemgetter
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp

import hogwild
from benchmarks import results
from hogwild.files import format_size
from hogwild.runtimes import simulator

FEATURES, NONZEROS, ROUNDS = 1_000, 20, 3
ROWS = {2: 10_000, 16: 10_000, 128: 10_000, 1_000: 50_000, 10_000: 200_000}  # by how many workers are simulated
MOST_IN_PYTHON = 1_000  # workers; more of them would take the event loop in Python minutes
THREADS = (1, 2, 8)
BOUNDS: dict[str, int | None] = {"asynchronous": None, "staleness=0": 0}
LOCAL_ROWS, LOCAL_FEATURES = 2_000, 100


def problem(rows: int, features: int) -> Any:
    random = np.random.default_rng(0)
    places = random.integers(0, features, (rows, NONZEROS))
    values = random.standard_normal(places.size).astype(np.float32)
    X = sp.csr_matrix((values, places.ravel(), np.arange(0, places.size + 1, NONZEROS)), shape=(rows, features))
    X.sum_duplicates()
    return hogwild.Linear((X, np.sign(X @ random.standard_normal(features))), l2=1e-4)


def trained(task: Any, workers: int, bound: int | None, runtime: Any, push_every: int = 1) -> hogwild.Run:
    strategy = hogwild.ParameterServer(workers=workers, staleness=bound, push_every=push_every)
    return hogwild.minimise(task, "sgd", hogwild.Cosine(0.05), strategy, runtime, 1)


def figures(run: hogwild.Run) -> dict[str, Any]:
    """The events that sum a run up, by name."""
    return {event["event"]: event for event in run.events}


def simulated(task: Any, workers: int, bound: int | None, compiled: bool = True) -> dict[str, float]:
    """An epoch of single rows in simulated time: what it took, of the processor alone."""
    started = time.process_time()
    with patch.object(simulator, "pays", lambda job: compiled):
        run = trained(task, workers, bound, hogwild.Simulator())
    seconds = time.process_time() - started
    told = figures(run)
    return {
        "events": told["idle"]["events"], "seconds": seconds, "pushes": told["staleness"]["count"],
        "memory": told["idle"]["memory"], "apart": told["idle"]["memory_apart"], "objective": run.objective,
    }  # fmt: skip


def exchanges(task: Any, workers: int, bound: int | None) -> tuple[float, float]:
    """Microseconds that a worker waits for each push and pull beyond its burst, and pushes a second of all together."""
    run = trained(task, workers, bound, hogwild.Local())
    told = figures(run)
    idle = sum(each["seconds"] for each in told["idle"]["workers"].values())
    pushes = told["staleness"]["count"]
    return 1e6 * idle / pushes, pushes / run.seconds


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    sizes = {2: 500, 16: 500} if quick else ROWS
    tasks = {rows: problem(rows, FEATURES) for rows in sorted(set(sizes.values()))}
    small = problem(LOCAL_ROWS // (10 if quick else 1), LOCAL_FEATURES)
    rounds = 1 if quick else ROUNDS
    simulations, raw = [], []
    simulated(tasks[sizes[2]], 2, None)  # compiles
    for workers, rows in sizes.items():
        for name, bound in BOUNDS.items():
            one = min((simulated(tasks[rows], workers, bound) for _ in range(rounds)), key=itemgetter("seconds"))
            python = simulated(tasks[rows], workers, bound, compiled=False) if workers <= MOST_IN_PYTHON else None
            raw.append({"workers": workers, "bound": bound, **one, "python": python})
            simulations.append([
                f"{workers:,}", f"{rows:,}", name, f"{one['events']:,}", f"{one['seconds']:.2f}",
                f"{one['events'] / one['seconds']:,.0f}",
                "" if python is None else f"{python['events'] / python['seconds']:,.0f}",
                f"{1e6 * one['seconds'] / one['pushes']:,.0f}",
                f"{format_size(one['memory'])} ({format_size(one['apart'])})",
            ])  # fmt: skip
            print(simulations[-1], flush=True)
    threads = []
    for workers in THREADS:
        for name, bound in BOUNDS.items():
            exchanges(small, workers, bound)
            found = [exchanges(small, workers, bound) for _ in range(rounds)]
            waits, speeds = zip(*found, strict=True)
            threads.append([str(workers), name, results.span(waits, ",.0f"), results.span(speeds, ",.0f")])
            raw.append({"threads": workers, "bound": bound, "found": found})
    head = [
        "workers", "rows", "parameter server", "events", "s", "events/s", "events/s in Python", "us a push",
        "memory (if not shared)",
    ]  # fmt: skip
    results.write(
        "messages",
        "Strategies by messages",
        [
            f"An epoch of rows with {NONZEROS} non-zeros each of {FEATURES:,} features, an update and an exchange for",
            "each row, with real gradients in simulated time on one core; seconds of the processor, of the compiled",
            f"event loop the least of {rounds} runs, and events a second of the loop in Python.",
            "",
            *results.table(head, simulations),
            "",
            f"On threads (`Local`), {small.data.n_rows:,} rows x {LOCAL_FEATURES} features, an exchange for each row:",
            "what a worker waits for a push and a pull beyond the burst between them, and pushes of all workers",
            f"together. Median (least to most) of {rounds} runs.",
            "",
            *results.table(["workers", "parameter server", "us an exchange", "pushes/s"], threads),
        ],
        out,
        raw,
    )  # fmt: skip
