"""
One slow worker: who waits for it?
==================================

One of four workers is ten times as slow as the others. Some strategies wait for it, some do not. Everything is
computed as it would be, and only time is simulated.

.. code-block:: console

   $ python examples/staleness.py [ROWS] [EPOCHS] [--draw]
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


def draw(runs: list[hogwild.Run]) -> None:
    """Draw the objective over simulated seconds, and how often which staleness occurred."""
    import matplotlib.pyplot as plt

    _, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for run, name, style in zip(runs, ("asynchronous", "staleness=3", "synchronous"), ("o-", "s-", "^-"), strict=True):
        left.plot(
            [each["seconds"] for each in run.history], [each["objective"] for each in run.history], style, label=name
        )
        counts = run.staleness["histogram"]
        right.plot([int(stale) for stale in counts], [*counts.values()], style, label=name, markersize=3)
    left.set(xlabel="simulated seconds", ylabel="objective")
    right.set(xlabel="staleness of a change", ylabel="number of changes", yscale="log")
    left.legend()
    plt.show()


if __name__ == "__main__":
    words = sys.argv[1:]
    runs = main(*(int(word) for word in words if word != "--draw"))
    if "--draw" in words:
        draw(runs)
