"""How well a simulated replay of what was recorded on threads predicts the staleness that there was."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import hogwild
from benchmarks import results
from benchmarks.plots import plot_replay

WORKERS, ROWS, FEATURES, PUSH_EVERY, EPOCHS, ROUNDS = 4, 4_000, 50, 16, 5, 5
SETTINGS: dict[str, dict[int, float]] = {
    "no worker is slow": {},
    "all 5 ms slow": dict.fromkeys(range(4), 0.005),
    "one 20 ms slow, the others 5 ms": {0: 0.005, 1: 0.005, 2: 0.005, 3: 0.02},
    "3, 5, 8 and 13 ms slow": {0: 0.003, 1: 0.005, 2: 0.008, 3: 0.013},
}
Shares = dict[int, float]


def shares(run: hogwild.Run) -> Shares:
    """Of all pushes, how many had each staleness."""
    histogram = next(event for event in run.events if event["event"] == "staleness")["histogram"]
    total = sum(histogram.values())
    return {int(delay): count / total for delay, count in histogram.items()}


def total_variation(first: Mapping[int, float], second: Mapping[int, float]) -> float:
    """The share of pushes that would have to have another staleness for both to be the same.

    >>> total_variation({0: 0.5, 3: 0.5}, {0: 0.5, 4: 0.5})
    0.5
    """
    return sum(abs(first.get(delay, 0) - second.get(delay, 0)) for delay in {*first, *second}) / 2


def earth_mover(first: Mapping[int, float], second: Mapping[int, float]) -> float:
    """By how many updates staleness would have to change in the mean over all pushes.

    >>> earth_mover({0: 0.5, 3: 0.5}, {0: 0.5, 5: 0.5})
    1.0
    """
    delays = range(max(*first, *second) + 1)
    apart = np.cumsum([first.get(delay, 0) - second.get(delay, 0) for delay in delays])
    return float(np.abs(apart).sum())


def problem() -> Any:
    random = np.random.default_rng(0)
    X = random.standard_normal((ROWS, FEATURES)).astype(np.float32)
    return hogwild.Linear((X, np.sign(X @ random.standard_normal(FEATURES))), l2=1e-3)


def trained(task: Any, runtime: Any, epochs: int) -> hogwild.Run:
    strategy = hogwild.ParameterServer(workers=WORKERS, push_every=PUSH_EVERY)
    return hogwild.minimise(task, "sgd", hogwild.Cosine(0.1), strategy, runtime, epochs)


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    task, epochs = problem(), 1 if quick else EPOCHS
    trained(task, hogwild.Local(), 1)  # compiles
    pictures: dict[str, tuple[Shares, Shares]] = {}
    rows, raw = [], {}
    for name, slow in SETTINGS.items():
        found = []
        for _ in range(1 if quick else ROUNDS):
            # The settings are seconds of a burst, and a delay is of one of its updates.
            delay = {worker: seconds / PUSH_EVERY for worker, seconds in slow.items()}
            run = trained(task, hogwild.Local(delay=delay, record=True), epochs)
            again = trained(task, hogwild.Simulator.replay(run.trace), epochs)
            before, after = shares(run), shares(again)
            found.append((total_variation(before, after), earth_mover(before, after), run.seconds, again.seconds))
            pictures[name] = before, after
        mean = sum(delay * share for delay, share in pictures[name][0].items())
        variation, moved, real, simulated = zip(*found, strict=True)
        off = [100 * (s / r - 1) for r, s in zip(real, simulated, strict=True)]
        spans = [results.span(variation, ".3f"), results.span(moved, ".2f"), results.span(off, "+.1f", "%")]
        rows.append([name, f"{mean:.1f}", *spans, f"{statistics.median(real):.2f}"])
        raw[name] = found
    picture = plot_replay(pictures, out)
    head = [
        "workers", "mean staleness", "total variation", "earth mover's, updates", "seconds predicted, off by",
        "seconds on threads",
    ]  # fmt: skip
    results.write(
        "replay",
        "The simulator against the threads it replays",
        [
            f"`ParameterServer(workers={WORKERS}, push_every={PUSH_EVERY})` on threads (`Local(record=True)`),",
            f"{ROWS:,} rows x {FEATURES} features, {epochs} epochs, and `Simulator.replay` of the trace: how far the",
            "two histograms of staleness are apart. Total variation: the share of pushes that would have to have",
            "another staleness; earth mover's distance: by how many updates in the mean. Median (least to most) of",
            f"{len(found)} runs, each with a trace of its own.",
            "",
            *results.table(head, rows),
            *(["", f"![]({picture})"] if picture else []),
        ],
        out,
        raw,
    )
