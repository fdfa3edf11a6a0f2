"""From the start of the process to the first training step, with and without compiled code on disk."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import results
from hogwild.data.generate import write

TURNS = 5
OPTIONS = {
    "logistic, AdaGrad, automatic step": ["--loss", "logistic", "--l2", "1e-5"],
    "hinge, SGD, given step": ["--loss", "hinge", "--rule", "sgd", "--step", "0.5"],
}


def first_step(data: Path, options: list[str], cache: Path, log: Path) -> float:
    """Seconds from starting the process to its first training step, by the events it logs."""
    log.unlink(missing_ok=True)
    command = [sys.executable, "-m", "hogwild", "train", str(data), *options, "--epochs", "1", "--log", str(log)]
    started = time.time()
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    events = {event["event"]: event for event in map(json.loads, log.read_text().splitlines())}
    return float(events["started"]["time"] + events["training"]["at"] - events["started"]["at"] - started)


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write("rcv1", folder / "data.svm", rows=1_000 if quick else 10_000)
        for what, options in OPTIONS.items():
            cold = [
                first_step(folder / "data.svm", options, folder / f"{what}-{turn}", folder / "log") for turn in range(2)
            ]
            warm = [
                first_step(folder / "data.svm", options, folder / f"{what}-0", folder / "log") for _ in range(TURNS)
            ]
            spans = [f"{statistics.median(times):.2f} ({min(times):.2f} to {max(times):.2f})" for times in (cold, warm)]
            rows.append([what, *spans])
    head = ["what is trained", "nothing compiled yet, s", "compiled code on disk, s"]
    results.write(
        "startup",
        "From the start of the process to the first training step",
        [
            "`hogwild train` on 10,000 rows of svmlight text (10 MB): imports, reading, compiling, choosing the step.",
            f"Median (least to most) of 2 and {TURNS} turns. The goals are 10 s and 1.5 s.",
            "",
            *results.table(head, rows),
        ],
        out,
    )
