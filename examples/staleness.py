"""One of four workers is ten times as slow as the others: some strategies wait for it, some do not.

Everything is computed as it would be; only time is simulated. ``python examples/staleness.py [ROWS]``
"""

from __future__ import annotations

import sys

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

import hogwild

WORKERS, SLOW = 4, 3
MOMENTS = (0.5, 1.0, 2.0, 4.0, 8.0)  # simulated seconds


def main(rows: int = 1_000, epochs: int = 4) -> list[hogwild.Run]:
    """Train in three ways and print what came of it."""
    random = np.random.default_rng(0)
    X = random.standard_normal((rows, 20))
    y = np.sign(X @ random.standard_normal(20) + random.standard_normal(rows))
    runtime = hogwild.Simulator(compute_time="log-normal:0.001:0.2", delay={SLOW: 0.009})
    ways = {  # the mean of four changes has a quarter of the noise, and bears four times the step
        "asynchronous": (hogwild.ParameterServer(WORKERS), 0.05),
        "staleness=3": (hogwild.ParameterServer(WORKERS, staleness=3), 0.2),
        "synchronous": (hogwild.Synchronous(WORKERS), 0.2),
    }
    console = Console()
    runs = []
    for name, (strategy, step) in ways.items():
        with console.status(f"Simulating: {name}"):
            runs.append(
                hogwild.minimise(
                    hogwild.Linear((X, y), l2=1e-3), "sgd", hogwild.Cosine(step), strategy, runtime, budget=epochs
                )
            )
    console.print(objectives(dict(zip(ways, runs, strict=True))))
    console.print(staleness(dict(zip(ways, runs, strict=True))))
    return runs


def objectives(runs: dict[str, hogwild.Run]) -> Table:
    """What each had reached when."""
    table = Table(title="Objective against simulated time", box=SIMPLE, pad_edge=False)
    for heading in ("", *(f"{moment:g} s" for moment in MOMENTS), "end", "after"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for name, run in runs.items():
        reached = [
            next((f"{each['objective']:.4f}" for each in reversed(run.history) if each["seconds"] <= moment), "")
            for moment in MOMENTS
        ]
        table.add_row(name, *reached, f"{run.objective:.4f}", f"{run.seconds:.1f} s")
    return table


def staleness(runs: dict[str, hogwild.Run]) -> Table:
    """How old what each trained on was, and how long they waited."""
    table = Table(
        title="Staleness: changes by others between a worker's read and its write",
        caption="fast, slow: means of the fast workers and of the slow one; idle: share of their time",
        box=SIMPLE,
        pad_edge=False,
    )
    for heading in ("", "mean", "95%", "most", "fast", "slow", "idle", "messages"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for name, run in runs.items():
        told, each = run.staleness, run.staleness["workers"]
        fast = np.mean([each[f"worker-{number}"]["mean"] for number in range(WORKERS) if number != SLOW])
        table.add_row(
            name,
            f"{told['mean']:.1f}",
            str(told["p95"]),
            str(told["most"]),
            f"{fast:.1f}",
            f"{each[f'worker-{SLOW}']['mean']:.1f}",
            f"{run.idle['idle_share']:.0%}",
            f"{run.traffic['messages']:,}",
        )
    return table


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
