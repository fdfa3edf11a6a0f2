"""Rows of three times the memory that they may take on a GPU: the rate at which training reads them."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import scipy.sparse as sp

import hogwild
from benchmarks.cuda_engine.linear import Task
from benchmarks.whole_fit import timed
from hogwild.data.csr import bytes_of

TIMES = 3  # the rows in multiples of the limit
COPIES = (1, 6)  # how often the rows are there
EPOCHS = 6
PINNED = 2**28  # bytes of the copy that tells the rate of the bus
HEAD = ["rows, GiB", "limit, GiB", "training, GB/s", "first epoch, ms", "copy of NumPy's arrays, GB/s", "share",
        "copy of pinned memory, GB/s", "share"]  # fmt: skip


def repeated(task: Task, copies: int) -> Task:
    """A set whose rows are there several times."""
    return Task(task.name, sp.vstack([task.X] * copies, "csr"), np.tile(task.y, copies))


def line_of(task: Task, turns: int) -> list[str]:
    """The rates for one set, in turn."""
    from hogwild.kernels.cuda_device import DeviceRows, copy_anew
    from hogwild.kernels.cuda_jit import cuda

    problem = task.problem()
    rows: Any = problem.data.rows
    size, runtime = bytes_of(rows), hogwild.Cuda(memory=bytes_of(rows) // TIMES)
    trained, copied, pinned, began = [], [], [], []
    memory, there = cuda.pinned_array(PINNED, np.uint8), cuda.device_array(PINNED, np.uint8)
    for turn in range(turns + 1):
        run = hogwild.minimise(problem, "adagrad", 0.1, runtime=runtime, budget=EPOCHS, evaluate_every_epoch=False)
        _, taken = timed(lambda: DeviceRows.of(rows, copy_anew))
        _, taken_pinned = timed(lambda: (there.copy_to_device(memory), cuda.synchronize()))
        if turn:  # The first compiles.
            trained.append(EPOCHS * size / run.seconds / 1e9)
            began.append(1e3 * run.history[0]["seconds"])
            copied.append(size / taken / 1e9)
            pinned.append(PINNED / taken_pinned / 1e9)
    rate, *others = (statistics.median(each) for each in (trained, copied, pinned))
    shares = [text for other in others for text in (f"{other:.1f}", f"{rate / other:.2f}")]
    return [
        f"{size / 2**30:.2f}",
        f"{size / TIMES / 2**30:.2f}",
        f"{rate:.1f}",
        f"{statistics.median(began):.0f}",
        *shares,
    ]
