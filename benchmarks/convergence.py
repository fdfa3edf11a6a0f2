"""Whether buffers change where a run converges to: the final objective against Serial's, over many seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hogwild
from benchmarks import results
from benchmarks.kinds import shape
from hogwild.data.generate import kind

SEEDS, EPOCHS, WORKERS, APART, L2 = 10, 30, 4, 512, 1e-4
ALLOWED = 0.001
# Few rows and features, so that a run comes to its end in time, and merges as "auto" would have them of large data.
KINDS: dict[str, dict[str, Any]] = {
    "rcv1": {"rows": 40_000, "features": 5_000, "nonzeros": 40},
    "clicks": {"rows": 40_000, "features": 20_000, "nonzeros": 20},
    "dense": {"rows": 40_000, "features": 40},
}


def differences(problem: Any, rule: str, seeds: int) -> tuple[list[float], list[float], bool]:
    """For each seed how far the objective with buffers is from Serial's, and Serial's from the least of all."""
    chosen = hogwild.minimise(problem, rule, strategy="serial", budget=EPOCHS, evaluate_every_epoch=False)
    step = next(event["step"] for event in chosen.events if event["event"] == "step chosen")
    alone, together, buffered = [], [], True
    for seed in range(seeds):
        for objectives, strategy in ((alone, hogwild.Serial()), (together, hogwild.Hogwild(WORKERS, buffer=APART))):
            run = hogwild.minimise(problem, rule, hogwild.Cosine(step), strategy, budget=EPOCHS, seed=seed)
            objectives.append(run.objective)
        buffered &= any(event["event"] == "replicas" for event in run.events)
    return (
        [mine / serial - 1 for mine, serial in zip(together, alone, strict=True)],
        [serial / min(alone + together) - 1 for serial in alone],
        buffered,
    )


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    rows, shapes, seeds = [], [], 2 if quick else SEEDS
    for name, options in KINDS.items():
        rows_wanted = options["rows"] // (10 if quick else 1)
        data = hogwild.data.InMemoryDataset(
            kind(name, **options | {"rows": rows_wanted}).rows, shuffled=True, name=f"{name}-like"
        )
        shapes.append(shape(data))
        for loss in ("logistic", "hinge"):
            for rule in ("sgd", "adagrad"):
                apart, own, buffered = differences(hogwild.Linear(data, loss, l2=L2), rule, seeds)
                worst = max(map(abs, apart))
                rows.append([
                    f"{data.name}, {loss}, {rule}", "yes" if buffered else "no", f"{sum(apart) / len(apart):+.3%}",
                    f"{worst:.3%}", f"{max(own):.3%}", "yes" if worst <= ALLOWED else "**no**",
                ])  # fmt: skip
    head = [
        "data, loss, rule",
        "buffers",
        "mean difference",
        "largest",
        "Serial above the least, largest",
        f"within {ALLOWED:.1%}",
    ]
    results.write(
        "convergence",
        "Where runs with buffers converge to",
        [
            f"The objective after {EPOCHS} epochs (cosine, one step for both, l2={L2:g}) with {WORKERS} workers and",
            f"merges every {APART} rows, against Serial's with the same seed; {seeds} seeds. {'; '.join(shapes)}.",
            "",
            *results.table(head, rows),
        ],
        out,
    )
