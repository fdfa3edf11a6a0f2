"""Training loop of a synchronous worker, on PyTorch's DistributedDataParallel."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import math
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from hogwild.delays import DelayStream
from hogwild.errors import DivergedError
from hogwild.runtimes.processes import shared_counters as at
from hogwild.runtimes.processes.ddp.collectives import Collectives
from hogwild.runtimes.processes.hogwild_worker import seed_epoch
from hogwild.runtimes.processes.shared_counters import SharedCounters
from hogwild.runtimes.processes.worker_config import SharedAverage, WorkerConfig
from hogwild.runtimes.processes.write_policies import StopRequested, sleep_delay

MOMENTUM = "momentum_buffer"  # name of the momentum in the state of PyTorch's optimisers: a sum of gradients, not steps


def set_step_with_correction(
    optimiser: torch.optim.Optimizer, group: dict[str, Any], step: float, correction: bool
) -> None:
    """Set the step size of a parameter group, with or without momentum correction.

    Goyal et al. 2017 write momentum in two ways: ``u = m u + g, w = w - step u`` (their equation 9) and
    ``v = m v + step g, w = w - v`` (10). For a constant step size the two are equal. When the step size changes, form
    (10) must multiply its momentum by new / old ("momentum correction"). Otherwise the momentum acts as if the old step
    size still held. Form (9) needs no correction.

    PyTorch's optimisers have the form (9). With the correction their momentum is left unchanged; without the
    correction it is multiplied by old / new. An optimiser of the form (10) has an attribute ``gathers_steps``, the name
    of the momentum in its state.

    >>> weight = torch.nn.Parameter(torch.zeros(1))
    >>> sgd = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    >>> sgd.state[weight]["momentum_buffer"] = torch.ones(1)
    >>> set_step_with_correction(sgd, sgd.param_groups[0], 0.2, correction=True); sgd.state[weight]["momentum_buffer"]
    tensor([1.])
    >>> set_step_with_correction(sgd, sgd.param_groups[0], 0.8, correction=False); sgd.state[weight]["momentum_buffer"]
    tensor([0.2500])
    """
    before, group["lr"] = float(group["lr"]), step
    if step == before or not step or not before:
        return
    steps = getattr(optimiser, "gathers_steps", None)
    if (steps is not None) != correction:
        return
    for parameter in group["params"]:
        momentum = optimiser.state.get(parameter, {}).get(steps or MOMENTUM)
        if momentum is not None:
            momentum.mul_(step / before if steps else before / step)


CONTINUE, PAUSE, STOP = range(3)
# Newer versions of PyTorch call this option forward_sync_buffers, older versions broadcast_buffers.
_OPTIONS = inspect.signature(DistributedDataParallel).parameters
OWN_BUFFERS: dict[str, Any] = {
    "forward_sync_buffers" if "forward_sync_buffers" in _OPTIONS else "broadcast_buffers": False
}


class DDPObserver(Protocol):
    """Protocol of the object that decides on stops and pauses, and that carries the decisions out in each worker."""

    rows: list[int]  # rows of the shared counters that this worker writes

    def decide(self) -> tuple[int, float]:
        """Return the decision for all workers, and the seconds of training; called in worker 0 only.

        The decision is ``CONTINUE``, ``PAUSE`` or ``STOP``.
        """

    def pause(self) -> None:
        """Pause; called when all workers are between the same two steps."""

    def publish(self) -> None:
        """Publish the model; called after the last step of an epoch, before the epoch is counted."""

    def on_epoch_end(self, epoch: int) -> None:
        """React to the end of an epoch; called in every worker after its last step."""

    def waiting(self) -> AbstractContextManager[None]:
        """Return a context for the time in which this worker waits for the other workers."""


class DDPWorker:
    """Synchronous worker, whose parameters are equal to those of all other workers after every step.

    DistributedDataParallel divides the sum of the workers' gradients by the number of workers. Each worker weights its
    mean loss so that the result is the mean over all samples of the step. This holds for every division of the samples
    among workers and batches.
    """

    def __init__(self, work: WorkerConfig, counters: SharedCounters, group: Collectives, observer: DDPObserver) -> None:
        assert work.ddp is not None
        self.work, self.counters, self.group, self.observer = work, counters, group, observer
        self.accumulate, self.correction = work.ddp.accumulate, work.ddp.correction
        self.net, self.optimiser = work.problem.net, work.optimiser
        unused = self._leaves_parameters_out()
        # Each worker keeps batch statistics of its own. Its batches are as large as those of a single worker would be.
        self.engine = DistributedDataParallel(self.net, find_unused_parameters=unused, **OWN_BUFFERS)
        self.problem = replace(work.problem, net=self.engine)
        # Samples of all workers, counted here because the shared counters of other workers may be a step apart.
        self.samples = counters.samples
        self.seconds = 0.0
        self._begun = False
        self._delays = DelayStream(work.delay, work.seed, group.rank)

    def train(self) -> None:
        """Train until the last epoch ends, or until worker 0 stops all workers."""
        self.net.train()
        with contextlib.suppress(StopRequested):
            for epoch in itertools.count(int(self.counters.counts[self.group.rank, at.EPOCH])):
                if self.work.epochs is not None and epoch >= self.work.epochs:
                    break
                self._epoch(epoch)
                self.observer.on_epoch_end(epoch + 1)

    def _leaves_parameters_out(self) -> bool:
        """Return whether the loss leaves out parameters in any worker, found by a backward pass on one batch.

        DistributedDataParallel must know, because it would otherwise wait for the gradients of these parameters.
        """
        problem = self.work.problem
        batch = np.arange(min(problem.batch, len(problem)))
        with self._buffers_kept(True):
            problem.loss(next(iter(problem.training.batches([batch]))))[0].backward()
        found = any(tensor.grad is None for tensor in self.net.parameters() if tensor.requires_grad)
        self.optimiser.zero_grad(set_to_none=True)
        return bool(self.group.all_reduce_sum(torch.tensor(int(found))))

    # Epochs and steps.

    def _epoch(self, epoch: int) -> None:
        work, rank = self.work, self.group.rank
        done = int(self.counters.counts[rank, at.BATCH])
        seed_epoch(work, rank, epoch, done > 0)
        share = work.problem.share(rank, self.group.workers, epoch, work.seed, work.labels)
        batches = list(work.problem.batches(share))
        sizes = self.group.gather_sizes([len(batch) for batch in batches])
        rounds = sizes.shape[1]
        # A worker that has no batches left takes part in the remaining steps with a batch of weight 0.
        spare = batches[0] if batches else np.arange(min(share.batch, share.samples))
        feed = self.problem.training.batches([*batches, *[spare] * (rounds - len(batches))][done:])
        for first in range(done, rounds, self.accumulate):
            self._receive_decision()
            step = sizes[:, first : first + self.accumulate]
            loss_sum = self._take_step(feed, step)
            if first + self.accumulate >= rounds:
                self.observer.publish()
            self._count(step, loss_sum)
        for row in self.observer.rows:
            self.counters.counts[row, at.BATCH] = 0
            self.counters.counts[row, at.EPOCH] = epoch + 1

    def _receive_decision(self) -> None:
        """Receive the decision of worker 0, so that all workers stop or pause before the same step.

        Raise ``StopRequested`` if the decision is ``STOP``.
        """
        self.counters.beat(self.group.rank)
        own = self.observer.decide() if self.group.rank == 0 else (CONTINUE, 0.0)
        with self.observer.waiting():
            decision, self.seconds = self.group.broadcast_numbers(*own)
        if decision == STOP:
            raise StopRequested
        if decision == PAUSE:
            self.observer.pause()

    def _take_step(self, feed: Iterator[Any], step: Tensor) -> float:
        """Take one step of all workers; return the sum of the losses of this worker's samples.

        ``step`` has the sizes of the step's batches, one row for each worker. Raise ``DivergedError`` if the sum of the
        losses is not finite.
        """
        sleep_delay(self._delays.next(), self.group.rank, self.counters)
        self._set_steps()
        sizes, total = step[self.group.rank].tolist(), int(step.sum())
        self.optimiser.zero_grad(set_to_none=True)
        loss_sum = 0.0
        for number, size in enumerate(sizes):
            later = number + 1 < len(sizes)
            with self.engine.no_sync() if later else contextlib.nullcontext(), self._buffers_kept(size == 0):
                loss, _ = self.problem.loss(next(feed))
                with self.observer.waiting():
                    (loss * (size * self.group.workers / total)).backward()
            loss_sum += loss.item() * size
        self.problem.clip_gradients(self.optimiser)  # All workers have the same gradients, and clip them alike.
        self.optimiser.step()
        if not math.isfinite(loss_sum):
            raise DivergedError(f"the loss of a batch is {loss_sum / max(1, sum(sizes))}")
        return loss_sum

    def _count(self, step: Tensor, loss_sum: float) -> None:
        counts, sizes = self.counters.counts, step.sum(1).tolist()
        self.samples += sum(sizes)
        if self.group.rank == 0 and self.work.mean is not None:
            self._average(self.work.mean)
        self.counters.sums[self.group.rank, at.LOSS] += loss_sum
        for row in self.observer.rows:
            counts[row, at.STEPS] += row == 0  # All workers take one step together, so only row 0 counts steps.
            counts[row, at.BATCH] += step.shape[1]
            counts[row, at.SAMPLES] += sizes[row]

    def _set_steps(self) -> None:
        if self.work.rate.schedule is None:
            return
        steps = self.work.rate(self.samples, self.seconds)
        for group, step in zip(self.optimiser.param_groups, steps, strict=True):
            if self._begun:
                set_step_with_correction(self.optimiser, group, step, self.correction)
            # The first step size after a start or a resumption is not a change, so it needs no correction.
            group["lr"] = step
        self._begun = True

    @contextlib.contextmanager
    def _buffers_kept(self, kept: bool) -> Iterator[None]:
        before = [tensor.clone() for tensor in self.net.buffers()] if kept else []
        yield
        for tensor, old in zip(self.net.buffers() if kept else (), before, strict=True):
            tensor.copy_(old)

    def _average(self, mean: SharedAverage) -> None:
        if mean.decay is None and self.work.rate.spent(self.samples, self.seconds) < mean.begins:
            return
        averaged = self.counters.counts[0, at.AVERAGED] = self.counters.counts[0, at.AVERAGED] + 1
        share = 1 / averaged if mean.decay is None else max(1 - mean.decay, 1 / averaged)
        with torch.no_grad():
            for kept, now in zip(mean.tensors, self.net.parameters(), strict=True):
                kept.lerp_(now.to(kept.device), share)
