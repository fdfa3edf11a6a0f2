"""How long training takes beside other work: every strategy in one memory, alone and beside busy processes."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import results
from hogwild import Averaging, Constant, Hogwild, Linear, Locked, RoundRobin, Serial, minimise
from hogwild.data.generate import kind
from hogwild.data.in_memory import InMemoryDataset

TURNS = 5
ALLOWED = 4.0  # times as long as on an idle machine that a strategy may take beside one busy process
BESIDE = (0, 1, 2)  # busy processes
EPOCHS = 6
STRATEGIES: tuple[Any, ...] = (
    Serial(), Hogwild(2, buffer=0), Hogwild(2, buffer=512), Averaging(2), Locked(2), RoundRobin(2),
)  # fmt: skip


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """Let so many processes do nothing but take time."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        time.sleep(0.5 if processes else 0.0)
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def seconds(problem: Linear, strategy: Any) -> float:
    """What the training of a whole call takes."""
    started = time.perf_counter()
    minimise(problem, "sgd", Constant(0.5), strategy, budget=EPOCHS, evaluate_every_epoch=False)
    return time.perf_counter() - started


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    rows = kind("rcv1", rows=2_000 if quick else 150_000, seed=1).rows
    problem = Linear(InMemoryDataset(rows, shuffled=True), loss="hinge", l2=1e-6)
    for strategy in STRATEGIES:
        seconds(problem, strategy)  # compiles
    times: dict[tuple[str, int], list[float]] = {}
    for _ in range(1 if quick else TURNS):
        for processes in BESIDE:
            with busy(processes):
                for strategy in STRATEGIES:
                    times.setdefault((repr(strategy), processes), []).append(seconds(problem, strategy))
    lines = []
    for strategy in STRATEGIES:
        idle = statistics.median(times[repr(strategy), 0])
        factors = [statistics.median(times[repr(strategy), processes]) / idle for processes in BESIDE[1:]]
        lines.append([
            f"`{strategy!r}`", *(results.span(times[repr(strategy), processes]) for processes in BESIDE),
            *(f"{factor:.1f}x" for factor in factors),
        ])  # fmt: skip
    head = ["strategy", "idle, s", "one busy process, s", "two, s", "one / idle", "two / idle"]
    results.write(
        "busy",
        "Training beside other work",
        [
            f"Whole calls of `minimise`, {EPOCHS} epochs on {problem.data.n_rows:,} rows like those of RCV1, hinge,",
            "SGD, two workers where there are several. A busy process is `while True: pass`. Median (least to most) of",
            f"{TURNS} turns. Beside one busy process a strategy may take {ALLOWED:.0f} times what it takes alone.",
            "",
            *results.table(head, lines),
        ],
        out,
        [{"strategy": strategy, "beside": beside, "seconds": taken} for (strategy, beside), taken in times.items()],
    )
