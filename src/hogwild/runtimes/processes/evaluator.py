"""Evaluator process: evaluates held-out data in a process of its own, while workers continue to train."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from hogwild.machine import this_machine
from hogwild.runtimes.processes.child_main import Report
from hogwild.runtimes.processes.shared_counters import SharedCounters
from hogwild.runtimes.processes.shared_tensors import SharedTensors
from hogwild.runtimes.processes.worker_config import Tensors
from hogwild.stopping import Budget, held_out_value

SPARE = 4  # divisor of the usable memory: a copy of the model may take a quarter of it


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Configuration of the evaluator: problem, held-out data, and the mean of the iterates if there is one."""

    problem: Any
    test: Any  # held-out data
    mean: Tensors | None  # mean of the iterates; None if the run does not average
    best: Tensors | None  # copy of the best values by held-out data; None if the run does not keep them
    threads: int = 1  # arithmetic threads of the evaluator
    budget: Budget = field(default_factory=Budget)  # which says which figure decides what is best

    def improves(self, figures: dict[str, float], least: float) -> bool:
        """Return whether figures are better than the best so far."""
        return held_out_value({f"test_{name}": value for name, value in figures.items()}, self.budget) < least


def run(
    work: Evaluation, rank: int, counters: SharedCounters, *, report: Report, orders: int, arena: SharedTensors
) -> None:
    """Evaluate the model at each order of the supervisor, until the supervisor closes the socket of orders.

    The evaluator copies the model when it receives an order, and evaluates the copy. If the usable memory has no room
    for a copy, it evaluates the shared model itself, which workers change meanwhile.
    """
    torch.set_num_threads(work.threads)
    net, feed = work.problem.net, work.problem.feed(work.test)
    values = [*net.parameters(), *net.buffers()]
    shared = [tensor.detach() for tensor in values]
    averaged = shared if work.mean is None else [*work.mean, *shared[len(work.mean) :]]
    copied = _fits(values)
    if copied:
        for tensor in values:
            tensor.data = tensor.data.clone()
    report({"kind": "ready", "copied": copied})
    work.problem.try_to_measure(feed)  # A metric that fails does so now, not after the first epoch.
    for order in _orders(orders):
        for tensor, now in zip(values, averaged if order["mean"] else shared, strict=True):
            tensor.data = tensor.data.copy_(now) if copied else now
        figures = work.problem.measure(feed)
        if work.best is not None and work.improves(figures, order["least"]):
            for kept, now in zip(work.best, values, strict=True):
                kept.copy_(now.detach())
        report({"kind": "measured", "figures": figures, **order})


def _orders(fd: int) -> Iterator[dict[str, Any]]:
    with os.fdopen(fd) as lines:
        for line in lines:
            yield json.loads(line)


def _fits(tensors: Tensors) -> bool:
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    return size <= this_machine().usable_memory // SPARE
