"""Ratings of Netflix's shape: updates a second, and the time to the held-out error of all cores."""

from __future__ import annotations

import statistics
from functools import partial
from typing import Any

import numba
import numpy as np

import hogwild
from benchmarks import results
from benchmarks.whole_fit import timed
from hogwild.data.csr import NO_VALUES, NO_WEIGHTS, CSRRows
from hogwild.data.ids import Ids
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.ratings.ratings import Ratings

USERS, ITEMS, COUNT = 480_189, 17_770, 100_000_000
RANK, PLANTED = 32, 8
HELD_OUT = 1_000_000
L2 = 0.05
BUDGETS = (1, 2, 3, 4, 5, 6, 8, 12)
ON_CORES = 4  # epochs of all cores, whose held-out error is the target
HEAD = ["way", "rule", "epochs", "training, s", "million updates/s", "whole call, s", "held-out RMSE"]


def made(count: int, seed: int = 0) -> Ratings:
    """Ratings of planted factors; few users rate many items, and few items have many ratings."""
    random = np.random.default_rng(0)  # Held-out ratings have the same factors.
    ends = [np.cumsum(random.lognormal(0, spread, size)) for spread, size in ((1.1, USERS), (1.5, ITEMS))]
    factors = [random.standard_normal((size, PLANTED), np.float32) * np.float32(0.42) for size in (USERS, ITEMS)]
    indices, labels = np.empty(2 * count, np.uint32), np.empty(count)
    _draw(indices, labels, *(part / part[-1] for part in ends), *factors, seed)
    rows = CSRRows(
        np.arange(0, 2 * count + 1, 2, dtype=np.int64), indices, NO_VALUES, labels, NO_WEIGHTS, USERS + ITEMS + 1,
        "binary",
    )  # fmt: skip
    data = InMemoryDataset(rows, shuffled=True, name="ratings")
    return Ratings(data, Ids(np.arange(USERS)), Ids(np.arange(ITEMS)))


@numba.njit(parallel=True)
def _draw(indices: Any, labels: Any, users: Any, items: Any, of_users: Any, of_items: Any, seed: int) -> None:
    blocks = 4096
    for block in numba.prange(blocks):
        np.random.seed(seed * blocks + block)
        for row in range(block * len(labels) // blocks, (block + 1) * len(labels) // blocks):
            user = np.searchsorted(users, np.random.random())
            item = np.searchsorted(items, np.random.random())
            product = np.float32(0)
            for k in range(PLANTED):
                product += of_users[user, k] * of_items[item, k]
            indices[2 * row], indices[2 * row + 1] = user, USERS + item
            labels[row] = min(5.0, max(1.0, np.rint(3.6 + product + 0.8 * np.random.standard_normal())))


def lines(quick: bool) -> list[list[str]]:
    """All cores and the GPU."""
    count, cores = COUNT // (2000 if quick else 1), results.cores()
    training, test = made(count), made(HELD_OUT // (2000 if quick else 1), seed=1)
    problem = hogwild.MatrixCompletion(training, RANK, l2=L2)
    gpu, threads = hogwild.Cuda(), hogwild.Hogwild(cores)

    def run(epochs: int, rule: str, **how: Any) -> Any:
        return hogwild.minimise(problem, rule, budget=epochs, test=test, evaluate_every_epoch=False, **how)

    run(1, "sgd", strategy=threads)
    found, taken = timed(partial(run, ON_CORES, "sgd", strategy=threads))
    target, all_lines = found.result["test_rmse"], []
    all_lines.append(_line(f"{cores} cores", "sgd", found, ON_CORES, count, taken))
    for rule in ("sgd", "adagrad"):
        run(1, rule, runtime=gpu)
        for epochs in BUDGETS:
            found, taken = timed(partial(run, epochs, rule, runtime=gpu))
            if found.result["test_rmse"] <= target:
                break
        again = [timed(partial(run, epochs, rule, runtime=gpu)) for _ in range(2)]
        taken = statistics.median([taken, *(seconds for _, seconds in again)])
        all_lines.append(_line("GPU", rule, again[-1][0], epochs, count, taken))
    return all_lines


def _line(way: str, rule: str, run: Any, epochs: int, count: int, taken: float) -> list[str]:
    return [
        way, rule, str(epochs), f"{run.seconds:.3f}", f"{epochs * count / run.seconds / 1e6:,.0f}", f"{taken:.2f}",
        f"{run.result['test_rmse']:.4f}",
    ]  # fmt: skip
