"""Rows of three times the memory that they may take on a GPU: the rate at which training reads them."""

from __future__ import annotations

import statistics
import time
from typing import Any

import hogwild
from benchmarks.cuda_engine.linear import Task
from hogwild.data.csr import bytes_of

TIMES = 3  # the rows in multiples of the limit
EPOCHS = 6
HEAD = ["rows, GiB", "limit, GiB", "training, GB/s", "copies alone, GB/s", "share", "first epoch, ms"]


def line_of(task: Task, turns: int) -> list[str]:
    """The rates for one set, in turn."""
    from hogwild.kernels.cuda_device import DeviceRows, copy_anew

    problem = task.problem()
    rows: Any = problem.data.rows
    size = bytes_of(rows)
    runtime = hogwild.Cuda(memory=size // TIMES)
    trained, copied, began = [], [], []
    for turn in range(turns + 1):
        run = hogwild.minimise(problem, "adagrad", 0.1, runtime=runtime, budget=EPOCHS, evaluate_every_epoch=False)
        started = time.perf_counter()
        DeviceRows.of(rows, copy_anew)
        if turn:  # The first is not compiled.
            # The rows are copied once into a random order; that is part of the first epoch.
            taken = run.history[-1]["seconds"] - run.history[0]["seconds"]
            trained.append((EPOCHS - 1) * size / taken / 1e9)
            began.append(1e3 * run.history[0]["seconds"])
            copied.append(size / (time.perf_counter() - started) / 1e9)
    shares = [one / other for one, other in zip(trained, copied, strict=True)]
    return [
        f"{size / 2**30:.2f}", f"{size / TIMES / 2**30:.2f}", f"{statistics.median(trained):.1f}",
        f"{statistics.median(copied):.1f}", f"{statistics.median(shares):.2f}",
        f"{statistics.median(began):.0f}",
    ]  # fmt: skip
