"""How well the simulator forecasts the seconds of runs by messages with default options, from what they recorded."""

from __future__ import annotations

import statistics
from pathlib import Path

import hogwild
from benchmarks import results
from hogwild.data.generate import kind
from hogwild.data.in_memory import InMemoryDataset

ROWS, EPOCHS, ROUNDS, L2 = 200_000, 3, 5, 1e-5
WORKERS = (1, 2, 4)
STRATEGIES = {
    "parameter server": hogwild.ParameterServer,
    "local SGD": hogwild.LocalSGD,
}


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    made = kind("rcv1", rows=ROWS // 100 if quick else ROWS).rows
    problem = hogwild.Linear(InMemoryDataset(made, shuffled=True, name="generated rows"), l2=L2)
    rows, raw = [], {}
    for name, strategy in STRATEGIES.items():
        for workers in WORKERS:
            found = []
            for turn in range(1 + (1 if quick else ROUNDS)):  # The first one compiles.
                asked = strategy(workers)
                step = hogwild.Cosine(0.5)
                run = hogwild.minimise(problem, "adagrad", step, asked, hogwild.Local(record=True), EPOCHS)
                again = hogwild.minimise(problem, "adagrad", step, asked, hogwild.Simulator.replay(run.trace), EPOCHS)
                if turn:
                    found.append((run.seconds, again.seconds))
            off = [100 * (simulated / real - 1) for real, simulated in found]
            real = statistics.median(seconds for seconds, _ in found)
            rows.append([name, str(workers), f"{real:.3f}", results.span(off, "+.1f", "%")])
            raw[f"{name}, {workers}"] = found
            print(rows[-1], flush=True)
    text = [
        f"Runs with default options on threads (`Local(record=True)`), RCV1-like {ROWS:,} rows, {EPOCHS} epochs of",
        "AdaGrad, and `Simulator.replay` of their traces: by how much the simulated seconds are off. Median (least to",
        f"most) of {len(found)} runs, each with a trace of its own. `hogwild lab scale-out` simulates larger clusters.",
        "",
        *results.table(["strategy", "workers", "seconds on threads", "forecast, off by"], rows),
    ]
    results.write("scale_out", "Forecasts of the simulator beside runs on threads", text, out, raw)
