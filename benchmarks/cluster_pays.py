"""Runs by messages beside shared memory, from the command line with default options: seconds to the same objective."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import results
from benchmarks.sets import _matrix
from hogwild.data.generate import kind

TURNS, EPOCHS = 3, 3
COMPILING_RUNS, LONG = 8, 30  # runs until the loop of several workers is compiled, and their epochs
MOST_EPOCHS = (3, 4, 5, 6, 8, 12)
LIMIT = 120.0  # seconds that a run may take
SETS = {
    "rcv1-like, 200,000 rows": ("rcv1", 200_000, {}, "1e-5"),
    "clicks-like, 250,000 rows x 4 M features": ("clicks", 250_000, {"features": 4_000_000}, "1e-6"),
}
RULES = ("adagrad", "ftrl")
WAYS = {
    "parameter-server, local": ["--strategy", "parameter-server", "--runtime", "local"],
    "local-sgd, local": ["--strategy", "local-sgd", "--runtime", "local"],
    "gossip, local": ["--strategy", "gossip", "--runtime", "local"],
    "parameter-server, ray": ["--strategy", "parameter-server", "--runtime", "ray"],
    "local-sgd, ray": ["--strategy", "local-sgd", "--runtime", "ray"],
}


@dataclass(frozen=True)
class Told:
    """What a run told: its objective, the seconds of training and of the whole command, and the workers at its end."""

    objective: float
    training: float
    whole: float
    workers: int


def typed(data: Path, l2: str, rule: str, epochs: int, options: list[str]) -> Told | None:
    """Run a command; return None if it takes too long."""
    words = ["--l2", l2, "--rule", rule, "--workers", "2", "--epochs", str(epochs), *options, "--json"]
    began = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "hogwild", "train", str(data), *words], capture_output=True, text=True, check=True,
            timeout=LIMIT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    record = json.loads(done.stdout)
    return Told(record["objective"], record["seconds"], time.perf_counter() - began, record.get("workers_used", 2))


def have_two_workers(data: Path, l2: str, rule: str) -> None:
    """Have the loop of several workers compiled: it is otherwise when runs have lasted long enough to repay it."""
    for _ in range(COMPILING_RUNS):
        found = typed(data, l2, rule, LONG, ["--strategy", "hogwild"])
        if found is None or found.workers > 1:
            return


def soonest(data: Path, l2: str, rule: str, options: list[str], target: float) -> tuple[int, list[Told]] | None:
    """Return the fewest epochs that come to the objective, and the runs of so many; None if none does in time."""
    for epochs in MOST_EPOCHS:
        first = typed(data, l2, rule, epochs, options)
        if first is None:
            return None
        if first.objective <= target:
            more = [typed(data, l2, rule, epochs, options) for _ in range(TURNS - 1)]
            return epochs, [first, *(each for each in more if each is not None)]
    return None


def line(name: str, rule: str, way: str, found: tuple[int, list[Told]] | None, usual: float) -> list[str]:
    """Return a row of the table."""
    if found is None:
        return [name, rule, way, "-", "-", "-", "-"]
    epochs, runs = found
    training, whole = (statistics.median(getattr(run, field) for run in runs) for field in ("training", "whole"))
    return [name, rule, way, str(epochs), f"{training:.2f}", f"{training / usual:.2f}", f"{whole - training:.1f}"]


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (which, size, more, l2) in SETS.items():
            made = kind(which, rows=size // 100 if quick else size, **more).rows
            data = Path(folder) / f"{which}.npz"
            X = _matrix(made)
            np.savez(data, format=b"csr", shape=X.shape, data=X.data, indices=X.indices, indptr=X.indptr, y=made.labels)
            for rule in RULES[: 1 if quick else None]:
                have_two_workers(data, l2, rule)
                usual = [typed(data, l2, rule, EPOCHS, ["--strategy", "hogwild"]) for _ in range(TURNS)]
                kept = [run for run in usual if run is not None]
                target, seconds = max(run.objective for run in kept), statistics.median(run.training for run in kept)
                rows.append(line(name, rule, "hogwild, threads", (EPOCHS, kept), seconds))
                for way, options in list(WAYS.items())[: 1 if quick else None]:
                    typed(data, l2, rule, 1, options)  # compiles
                    found = soonest(data, l2, rule, options, target)
                    rows.append(line(name, rule, way, found, seconds))
                    print(rows[-1], flush=True)
    head = ["set", "rule", "strategy, runtime", "epochs", "training, s", "times hogwild", "start-up and end, s"]
    text = [
        "`hogwild train DATA.npz --l2 ... --rule ... --workers 2 --epochs N --strategy ... --runtime ...`, all other",
        f"options left out: the fewest epochs N that come to the objective of `--strategy hogwild` after {EPOCHS},",
        f"and the seconds of training, without the last evaluation. Medians of {TURNS} runs.",
        f"A dash: not within {LIMIT:g} s or {MOST_EPOCHS[-1]} epochs.",
        "",
        *results.table(head, rows),
    ]
    results.write("cluster_pays", "Runs by messages beside shared memory", text, out, raw=rows)
