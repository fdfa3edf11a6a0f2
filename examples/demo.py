"""
Sooner than scikit-learn: one core and all cores
================================================

How much sooner than scikit-learn do one core and all cores come to the same held-out loss? The data is like text.
``make demo`` runs this script.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_matrix
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss

import hogwild
from hogwild.data.generate import kind
from hogwild.machine import usable_cores

L2 = 1e-6
EPOCHS = 8
SECONDS = 1.0  # for each strategy in which workers wait for each other
Data = tuple[csr_matrix, np.ndarray]


@dataclass(frozen=True)
class Curve:
    """Held-out loss over the seconds since the call."""

    name: str
    cores: int
    seconds: list[float]
    losses: list[float]

    def time_to(self, loss: float) -> float:
        """Seconds until the held-out loss was this low."""
        return next(at for at, reached in zip(self.seconds, self.losses, strict=True) if reached <= loss)


def text_like(rows: int) -> tuple[Data, Data]:
    """Draw rows like those of RCV1: 47,236 features, of which a row has some 70, as frequent as words are."""
    drawn = kind("rcv1", rows=rows, seed=1).rows
    shape = (len(drawn.labels), drawn.features)
    X = csr_matrix((drawn.values, drawn.indices.astype(np.int32), drawn.indptr.astype(np.int32)), shape)
    y, cut = drawn.labels > 0, rows * 4 // 5
    return (X[:cut], y[:cut]), (X[cut:], y[cut:])


def ours(train: Data, test: Data, strategy: Any) -> Curve:
    """Train with a strategy; evaluations after the epochs are not timed, the search for the step size is."""
    curve = Curve(f"hogwild, {type(strategy).__name__}", hogwild.strategies.worker_count(strategy), [], [])

    prepared = 0.0

    def note(event: dict[str, Any]) -> None:
        nonlocal prepared
        if event["event"] == "training":
            prepared = time.perf_counter() - started
        if event["event"] == "epoch":
            curve.seconds.append(prepared + event["seconds"])
            curve.losses.append(event["test_loss"])

    started = time.perf_counter()
    problem = hogwild.Linear(train, "logistic", l2=L2)
    hogwild.minimise(problem, strategy=strategy, budget=EPOCHS, test=test, callbacks=[note])
    return curve


def estimated(name: str, model: Any, train: Data, test: Data) -> Curve:
    """Train an estimator, scikit-learn's or ours, epoch by epoch; evaluations are not timed."""
    curve, spent = Curve(name, 1, [], []), 0.0
    for _ in range(EPOCHS):
        started = time.perf_counter()
        model.partial_fit(*train, classes=[False, True])
        spent += time.perf_counter() - started
        curve.seconds.append(spent)
        curve.losses.append(log_loss(test[1], model.predict_proba(test[0])))
    return curve


def shown(columns: list[str], title: str, caption: str) -> Table:
    """Begin a table."""
    table = Table(title=title, caption=caption, box=SIMPLE, pad_edge=False, title_justify="left")
    for name in columns:
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    return table


def sooner(console: Console, train: Data, test: Data, workers: int) -> list[Curve]:
    """Show how soon scikit-learn, one core and all cores come to the same held-out loss."""
    with console.status("Training"):
        same: dict[str, Any] = {"loss": "log_loss", "alpha": L2, "random_state": 0}
        curves = [
            estimated("scikit-learn, SGDClassifier", SGDClassifier(**same), train, test),
            estimated("hogwild, HogwildClassifier", hogwild.HogwildClassifier(**same), train, test),
            ours(train, test, hogwild.Serial()),
            ours(train, test, hogwild.Hogwild(workers)),
        ]
    target = math.ceil(1000 * max(min(curve.losses) for curve in curves)) / 1000  # which all of them reach
    theirs = curves[0].time_to(target)
    table = shown(
        ["", "cores", "seconds", "speed-up", "best loss"],
        f"Logistic regression: seconds to a held-out loss of {target:.3f}",
        f"l2={L2:g}, {EPOCHS} epochs, else default; evaluations not timed",
    )
    for curve in curves:
        seconds = curve.time_to(target)
        table.add_row(
            curve.name, str(curve.cores), f"{seconds:.2f}", f"{theirs / seconds:.2f}x", f"{min(curve.losses):.4f}"
        )
    console.print(table)
    return curves


def waiting(console: Console, train: Data, workers: int) -> dict[str, float]:
    """Show what it costs when workers wait for each other."""
    problem, rates = hogwild.Linear(train, "logistic", l2=L2), {}
    strategies = (hogwild.Hogwild(workers, buffer=0), hogwild.Locked(workers), hogwild.RoundRobin(workers))
    table = shown(
        ["", "cores", "rows/s", "speed-up"],
        "What it costs when workers wait for each other",
        "one second of each; Hogwild as in the paper",
    )
    for strategy in strategies:
        name = type(strategy).__name__
        with console.status(f"Training: {name}"):
            run = hogwild.minimise(
                problem, schedule=hogwild.Constant(0.1), strategy=strategy, budget=hogwild.Budget(seconds=SECONDS),
                evaluate_every_epoch=False,
            )  # fmt: skip
        rates[name] = run.result["updates"] / run.seconds
        table.add_row(name, str(workers), f"{rates[name]:,.0f}", f"{rates[name] / rates['Hogwild']:.2f}x")
    console.print(table)
    return rates


def compile_kernels(workers: int) -> None:
    """Compile what the demo needs, which is then on disk: the same on few rows, and the loop with buffers."""
    train, test = text_like(1_000)
    for strategy in (
        hogwild.Serial(),
        hogwild.Hogwild(workers, buffer=256),
        hogwild.Hogwild(workers, buffer=0),
        hogwild.Locked(workers),
        hogwild.RoundRobin(workers),
    ):
        hogwild.minimise(hogwild.Linear(train, "logistic", l2=L2), strategy=strategy, budget=1, test=test)
    hogwild.HogwildClassifier("log_loss").partial_fit(*train, classes=[False, True])


def main(rows: int = 150_000) -> tuple[list[Curve], dict[str, float]]:
    """Draw rows, train on them in different ways, and print what came of it."""
    console, workers = Console(), max(2, usable_cores())
    with console.status("Compiling, if it has not been done before"):
        compile_kernels(workers)
    with console.status(f"Drawing {rows:,} rows"):
        train, test = text_like(rows)
    nonzeros = train[0].nnz + test[0].nnz
    console.print(f"{rows:,} rows x {train[0].shape[1]:,} features, {nonzeros:,} non-zeros", style="dim")
    found = sooner(console, train, test, workers), waiting(console, train, workers)
    console.print("Next: [bold].venv/bin/hogwild train FILE[/] on data of your own; README.md has the rest.")
    return found


def draw(curves: list[Curve]) -> None:
    """Draw the held-out loss over the seconds since the call."""
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(figsize=(7, 4))
    for curve, style in zip(curves, ("o-", "s-", "^-", "d-"), strict=True):
        axes.plot(curve.seconds, curve.losses, style, label=f"{curve.name} ({curve.cores})")
    axes.set(xscale="log", xlabel="seconds", ylabel="held-out log loss")
    axes.legend(title="cores in brackets")
    plt.show()


# It compares times, so no other example runs beside it.
# sphinx_gallery_parallel = False
if __name__ == "__main__":
    if sys.argv[1:] == ["--compile"]:
        compile_kernels(max(2, usable_cores()))
    else:
        curves, _ = main(*(int(word) for word in sys.argv[1:] if word != "--draw"))
        if "--draw" in sys.argv:
            draw(curves)
