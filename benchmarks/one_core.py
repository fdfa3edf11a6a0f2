"""One worker against scikit-learn's SGD, on the same rows in the same run: rows a second, and time per non-zero."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn.linear_model import SGDClassifier

import hogwild
from benchmarks import results, sets
from benchmarks.sets import Split
from benchmarks.tools.way import timed

TURNS = 7
UPDATES = 1_000_000  # rows that are visited in one turn, in as many epochs as that takes
LOSSES = {"logistic": "log_loss", "hinge": "hinge"}


def scikit(split: Split, loss: str, epochs: int) -> float:
    model = SGDClassifier(LOSSES[loss], alpha=split.l2, max_iter=epochs, tol=None, random_state=0)
    return timed(lambda: model.fit(split.X, split.y))[1]


def ours(data: Any, l2: float, loss: str, rule: str, epochs: int) -> float:
    """Seconds of training alone, with a step that is given."""
    step = {"sgd": 0.5, "adagrad": 0.1}[rule]
    problem = hogwild.Linear(data, loss, l2=l2)
    schedule = hogwild.InverseTime(step=step)
    return hogwild.minimise(problem, rule, schedule, "serial", budget=epochs, evaluate_every_epoch=False).seconds


def measured(split: Split, loss: str, turns: int, updates: int) -> list[list[str]]:
    """Rows of the table for one set and one loss."""
    rows, shuffled = len(split.y), hogwild.data.open(split.svm)
    arrays = hogwild.data.open(split.X, split.y)
    epochs = max(2, round(updates / rows))
    tasks: dict[str, Callable[[], float]] = {"scikit-learn SGDClassifier": lambda: scikit(split, loss, epochs)}
    for rule in ("sgd", "adagrad"):
        for order, data in (("arrays, a permutation an epoch", arrays), ("file, blocks in random order", shuffled)):
            tasks[f"hogwild {rule}, {order}"] = lambda data=data, rule=rule: ours(data, split.l2, loss, rule, epochs)  # type: ignore[misc]
    for task in tasks.values():
        task()  # compiled and warm
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(turns):
        for name, task in tasks.items():
            seconds[name].append(task())
    baseline = next(iter(seconds.values()))
    return [
        [
            f"{split.name}, {loss}",
            name,
            f"{sorted(epochs * rows / s for s in taken)[len(taken) // 2]:,.0f}",
            results.span([1e9 * s / epochs / split.nonzeros for s in taken]),
            results.span([theirs / mine for theirs, mine in zip(baseline, taken, strict=True)], ".1f", "x"),
        ]
        for name, taken in seconds.items()
    ]


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    chosen, rows = (sets.QUICK if quick else sets.SETS), []
    for name in ("rcv1", *(("reuters",) if sets.SHARED.is_dir() else ())):
        with sets.opened(chosen[name]) as split:
            for loss in LOSSES:
                rows += measured(split, loss, 2 if quick else TURNS, UPDATES // 100 if quick else UPDATES)
    head = ["set, loss", "what", "rows/s, median", "ns per non-zero and update", "rows/s, times scikit-learn's"]
    results.write(
        "one_core",
        "One core",
        [
            f"L2-regularised, every row of an epoch in random order; median (least to most) of {TURNS} turns, ratios",
            "turn by turn. scikit-learn has no AdaGrad: it is compared with its SGD. The goals are 3 times",
            "scikit-learn's rows/s and at most 3 ns per non-zero.",
            *([] if sets.SHARED.is_dir() else ["The folder of shared data is not here, and so reuters is left out."]),
            "",
            *results.table(head, rows),
        ],
        out,
    )
