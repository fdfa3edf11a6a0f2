"""A linear SVM on text-like data, trained by workers that coordinate in four different ways.

Run it with ``make demo``.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

import hogwild
from hogwild.data.generate import write


def main(rows: int = 150_000, epochs: int = 6) -> list[dict[str, float]]:
    """Generate a file, train on it with each strategy, and print what came of it."""
    console = Console()
    workers = max(2, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rcv1.svm")
        with console.status(f"Writing {rows:,} rows of text-like data"):
            write("rcv1", path, rows=rows, seed=1)
        data = hogwild.data.open(path)
    console.print(f"{data.n_rows:,} rows x {data.n_features:,} features, {data.nonzeros:,} non-zeros", style="dim")
    train, test = data.split(0.2, seed=0)
    problem = hogwild.Linear(train, loss="hinge", l2=1e-6)

    strategies = [
        hogwild.Serial(),
        hogwild.Locked(workers),
        hogwild.RoundRobin(workers),
        hogwild.Hogwild(workers),
    ]
    table = Table(
        title="A linear SVM by stochastic gradient descent",
        caption="time is of training alone, accuracy on held-out rows",
        box=SIMPLE,
        pad_edge=False,
    )
    for name in ("", "workers", "time (s)", "rows/s", "loss", "accuracy", "speed-up"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    with console.status("Compiling"):  # which is done once, and kept: also the loop for several workers with buffers
        hogwild.minimise(
            problem, hogwild.SGD(), hogwild.Cosine(step=0.5), hogwild.Hogwild(workers, buffer=512), budget=1
        )
    results: list[dict[str, float]] = []
    for strategy in strategies:
        name = type(strategy).__name__
        with console.status(f"Training: {name}"):
            run = hogwild.minimise(problem, hogwild.SGD(), hogwild.Cosine(step=0.5), strategy, budget=epochs, test=test)
        result = {**run.result, "seconds": run.seconds, "rate": run.result["updates"] / run.seconds}
        results.append(result)
        table.add_row(
            name,
            str(run.asked["workers"]),
            f"{run.seconds:.2f}",
            f"{result['rate']:,.0f}",
            f"{run.loss:.4f}",
            f"{result['test_accuracy']:.4f}",
            f"{results[0]['seconds'] / run.seconds:.2f}x",
        )
    console.print(table)
    return results


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
