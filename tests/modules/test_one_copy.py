"""A model and data of which there is room for one copy: however many workers, one copy is all there is."""

from __future__ import annotations

import contextlib
from pathlib import Path

import nets
import numpy as np
import psutil
import pytest
import torch
from torch import optim

from hogwild import Hogwild, Module, minimise
from hogwild.events import Event

WORKERS = 4


def resident(others: set[int]) -> int:
    """MiB that this process and all it has started take together, but for others; what several share counts once."""
    total = 0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        if process.pid in others:
            continue
        with contextlib.suppress(ProcessLookupError):  # one that is about to end has no memory any more
            lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total // 1024


class Enough(Exception):  # noqa: N818  (nothing is wrong)
    """All has been seen that was to be seen."""


def in_training(net: nets.Heavy, data: nets.Weighty, others: set[int]) -> int:
    """The memory that is taken when every worker has trained."""
    taken = []

    def look(event: Event) -> None:
        if event["event"] == "progress" and min(event["workers"]) > 0:
            taken.append(resident(others))
            raise Enough

    problem = Module(net, nets.as_it_is, data, batch=1)
    with pytest.raises(Enough):
        minimise(problem, optim.SGD, strategy=Hogwild(WORKERS), budget=1, callbacks=[look])
    return taken[0]


def test_one_copy_for_all(tmp_path: Path) -> None:
    earlier = {child.pid for child in psutil.Process().children(recursive=True)}  # of other tests
    small = in_training(nets.Heavy(1), nets.Weighty(torch.ones(1)), earlier)
    np.save(tmp_path / "array.npy", np.ones(100 * 2**18, np.float32))
    mapped = np.load(tmp_path / "array.npy", mmap_mode="r")
    data = nets.Weighty(torch.ones(100 * 2**18), np.ones(100 * 2**18, np.float32), mapped)
    large = in_training(nets.Heavy(400), data, earlier)
    # 400 MiB of model and 100 MiB each of tensor and mapped file, once; of the array, ours and the workers' one.
    assert 700 < large - small < 1000
