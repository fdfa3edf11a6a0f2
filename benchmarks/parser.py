"""How fast svmlight text is parsed, against scikit-learn on the same file.

Run ``python -m benchmarks parser``: it makes an RCV1-like file of about 100 MB in a temporary folder, reads it in turn
with both (so that whatever else the machine does hits both), and keeps the table in ``benchmarks/results/parser.md``.
"""

from __future__ import annotations

import gzip
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from benchmarks import results
from hogwild.data import open as open_data
from hogwild.data.csr import concatenate
from hogwild.data.reader import ReadOptions
from hogwild.data.readers.svmlight import read

MEGABYTES, REPEATS, PIECE_BYTES = 100, 7, 64 << 20

COMPILE = """
import numba, time
numba.njit(lambda x: x)(1)
from pathlib import Path
from hogwild.data.readers.svmlight import read
from hogwild.data.reader import ReadOptions
start = time.perf_counter()
list(read(Path({path!r}), ReadOptions(), 1 << 16))
print(time.perf_counter() - start)
"""


def rcv1_like(megabytes: int, features: int = 47_236, in_a_row: int = 75) -> bytes:
    """Text with Zipf-like columns and rows of length one, as tf-idf makes them."""
    rng = np.random.default_rng(0)
    shares = np.cumsum(1 / (np.arange(features) + 10) ** 0.9)
    lines = []
    for label in rng.choice(["1", "-1"], 10_000):
        columns = np.unique(np.searchsorted(shares, rng.random(in_a_row) * shares[-1])) + 1
        values = np.abs(rng.standard_normal(len(columns)))
        values /= np.linalg.norm(values)
        fields = (f"{column}:{value:.6g}" for column, value in zip(columns.tolist(), values.tolist(), strict=True))
        lines.append(" ".join([label, *fields]) + "\n")
    block = "".join(lines).encode()
    return block * max(1, round(megabytes * 1e6 / len(block)))


def seconds(task: Callable[[], object]) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def compile_seconds(folder: Path) -> float:
    """From nothing compiled to the first rows read, without what numba itself takes to start."""
    path = folder / "small.svm"
    path.write_text("1 1:1\n")
    code, environment = COMPILE.format(path=str(path)), {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache")}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return float(run.stdout)


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain, packed = folder / "rcv1.svm", folder / "rcv1.svm.gz"
        text = rcv1_like(1 if quick else MEGABYTES)
        plain.write_bytes(text)
        packed.write_bytes(gzip.compress(text[: len(text) // 5], 6))
        tasks: dict[str, tuple[Callable[[], object], int]] = {
            "scikit-learn, load_svmlight_file": (lambda: load_svmlight_file(str(plain)), len(text)),
            "hogwild, in pieces": (lambda: sum(map(len, read(plain, ReadOptions(), PIECE_BYTES))), len(text)),
            "hogwild, into one matrix": (lambda: concatenate(list(read(plain, ReadOptions(), PIECE_BYTES))), len(text)),
            "hogwild.data.open: read, checked, shuffled": (lambda: open_data(plain), len(text)),
            "hogwild, in pieces, from .gz": (lambda: list(read(packed, ReadOptions(), PIECE_BYTES)), len(text) // 5),
        }
        list(read(packed, ReadOptions(), PIECE_BYTES))  # compiled and warm
        speeds: dict[str, list[float]] = {task: [] for task in tasks}
        for _ in range(REPEATS):
            for task, (run, size) in tasks.items():
                speeds[task].append(size / 1e6 / seconds(run))
        compiling = compile_seconds(folder)
    baseline = next(iter(speeds.values()))
    rows = []
    for task, measured in speeds.items():
        ratios = sorted(ours / theirs for ours, theirs in zip(measured, baseline, strict=True))
        shown = f"{statistics.median(ratios):.1f}x ({ratios[0]:.1f} to {ratios[-1]:.1f})"
        rows.append([task, f"{statistics.median(measured):,.0f}", shown])
    head = ["reader", "MB/s, median", "against scikit-learn, median of pairs (least to most)"]
    results.write(
        "parser",
        "Parser speed",
        [
            f"svmlight text, {len(text) / 1e6:.0f} MB, RCV1-like, plain unless stated, cached; {REPEATS} turns.",
            "The goal is 8 times scikit-learn.",
            "",
            *results.table(head, rows),
            "",
            f"Compiling the parser, with an empty cache: {compiling:.1f} s.",
        ],
        out,
    )
