"""How well lost updates are counted: against what a weight lacks to which every update adds one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks import results
from hogwild import Constant, Hogwild, Linear, minimise

TURNS = 9
FEWEST = 100  # updates that must be missing for a share of them to mean anything


def always_down(prediction: float, label: float) -> tuple[float, float]:
    return 0.0, -1.0


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    rows = 10_000 if quick else 400_000
    problem = Linear((np.ones((rows, 1), np.float32), np.zeros(rows)), always_down, intercept=False)
    lines, apart = [], []
    for _ in range(2 if quick else TURNS):
        run = minimise(
            problem,
            "sgd",
            Constant(1.0),
            Hogwild(2, buffer=0),
            "threads",
            1,
            count_conflicts=True,
            evaluate_every_epoch=False,
        )
        missing, counted = rows - int(run.model.weights[0, 0]), int(run.conflicts["lost_writes"])
        if missing > FEWEST:
            apart.append(abs(counted - missing) / missing)
        lines.append([f"{missing:,}", f"{counted:,}"])
    verdict = f"The median difference is {np.median(apart):.1%}." if apart else "Workers hardly ever collided."
    results.write(
        "lost_updates",
        "Lost updates: counted and missing",
        [
            f"Two workers add one to one weight, {rows:,} times. What it lacks in the end was lost. {verdict}",
            "",
            *results.table(["missing", "counted as lost"], lines),
        ],
        out,
    )
