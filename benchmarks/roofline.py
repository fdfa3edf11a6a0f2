"""How near training comes to what the machine can do: copying memory, and gathering single numbers from it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import hogwild
from benchmarks import results
from benchmarks.kinds import LARGE, have_compiled, made, shape
from benchmarks.tools.way import timed
from hogwild.jit import compiled

TURNS, EPOCHS = 5, 3
COPIED = 2**28  # bytes, more than caches hold
GATHERED = 2**24  # numbers
WIDTH = {"sgd": 1, "adagrad": 2}  # floats that each coordinate has


@compiled
def gather(table: Any, places: Any) -> float:
    """Add up numbers from all over a table, four at a time so that none waits for the one before."""
    a = b = c = d = np.float32(0)
    for k in range(0, places.size - 3, 4):
        a += table[places[k]]
        b += table[places[k + 1]]
        c += table[places[k + 2]]
        d += table[places[k + 3]]
    return a + b + c + d


def at_once(threads: int, work: Callable[[int], object]) -> float:
    """Seconds for every thread to do its share."""
    with ThreadPoolExecutor(threads) as pool:
        return timed(lambda: list(pool.map(work, range(threads))))[1]


def copying(threads: int) -> float:
    """Bytes a second that are read and written in copying."""
    source, target = (np.ones(COPIED // 8) for _ in range(2))
    mine, yours = np.array_split(source, threads), np.array_split(target, threads)
    return 2 * COPIED / at_once(threads, lambda t: np.copyto(yours[t], mine[t]))


def gathering(table: Any, places: Any, threads: int) -> float:
    """Numbers a second that are looked up."""
    parts = np.array_split(places, threads)
    return places.size / at_once(threads, lambda t: gather(table, parts[t]))


def training(data: Any, rule: str, workers: int) -> float:
    """Non-zeros a second in training."""
    strategy = hogwild.Serial() if workers == 1 else hogwild.Hogwild(workers)
    step, problem = hogwild.Constant(0.1), hogwild.Linear(data, l2=1e-6)
    have_compiled(problem, rule, workers)
    run = hogwild.minimise(problem, rule, step, strategy, budget=EPOCHS, evaluate_every_epoch=False)
    return EPOCHS * data.nonzeros / run.seconds


def streamed(data: Any) -> int:
    """Bytes that one non-zero has in the data: its index, and its value."""
    return int({"sparse": 8, "binary": 4, "dense": 4}[data.layout])


def places_of(data: Any) -> Any:
    """The data's own coordinates in the order in which they are stored."""
    if data.layout == "dense":
        return np.tile(np.arange(data.n_features, dtype=np.uint32), GATHERED // data.n_features)
    return np.ascontiguousarray(data.rows.indices[:GATHERED], np.uint32)


def measured(data: Any, workers: list[int], turns: int) -> list[list[str]]:
    """Rows of the table for one kind of data."""
    rows, places = [], places_of(data)
    for rule, width in WIDTH.items():
        table = np.ones(data.n_features * width, np.float32)
        spread = places * np.uint32(width)
        anywhere = np.random.default_rng(0).integers(0, table.size, GATHERED, np.uint32)
        for n in workers:
            gather(table, places[:8])
            training(data, rule, n)  # compiled and warm
            taken = [
                (copying(n), gathering(table, spread, n), gathering(table, anywhere, n), training(data, rule, n))
                for _ in range(turns)
            ]
            copied, own, random, trained = (float(np.median(column)) for column in zip(*taken, strict=True))
            speed = trained * streamed(data)
            rows.append([
                f"{data.name}, {rule}", str(n), f"{trained / 1e6:,.0f}", f"{1e9 * n / trained:.2f}",
                f"{speed / 1e9:.2f}", f"{copied / 1e9:.1f}", f"{speed / copied:.0%}", f"{own / 1e6:,.0f}",
                f"{trained / own:.0%}", f"{random / 1e6:,.0f}", f"{trained / random:.0%}",
            ])  # fmt: skip
    return rows


def main(out: Path = results.FOLDER, quick: bool = False) -> None:
    workers, rows, shapes = sorted({1, results.cores()}), [], []
    for name in LARGE:
        data = made(name, quick)
        shapes.append(shape(data))
        rows += measured(data, workers, 2 if quick else TURNS)
    head = [
        "data, rule", "workers", "trained: million non-zeros/s", "ns per non-zero and core", "of the data: GB/s",
        "copy: GB/s", "share", "gather, the data's coordinates: million/s", "share", "gather, random: million/s",
        "share",
    ]  # fmt: skip
    results.write(
        "roofline",
        "Against the machine's own limits",
        [
            f"Logistic loss, {EPOCHS} epochs, constant step, {'; '.join(shapes)}. Medians of {TURNS} turns, each of",
            "which measures the machine as well, with as many threads.",
            "",
            *results.table(head, rows),
            "",
            "- *of the data*: bytes of the rows that training passes over (8 a non-zero with its value, 4 without or",
            "  where rows are dense), against bytes read and written by copying 256 MiB.",
            "- *gather*: single numbers read from a table as large as the model, at the coordinates of the rows as",
            "  they are stored, and at random ones. Training reads each one twice, computes with it, writes it back.",
        ],
        out,
    )
