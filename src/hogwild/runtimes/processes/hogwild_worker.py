"""Hogwild worker process (Recht et al. 2011): draws batches, updates the model, and counts its progress."""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from typing import TYPE_CHECKING, Any

import torch

from hogwild.delays import DelayStream
from hogwild.errors import DivergedError
from hogwild.runtimes.processes import rng_state
from hogwild.runtimes.processes import shared_counters as at
from hogwild.runtimes.processes.atomic_optimiser_step import concurrent_steps
from hogwild.runtimes.processes.child_main import flush
from hogwild.runtimes.processes.shared_counters import SharedCounters
from hogwild.runtimes.processes.worker_config import SharedAverage, WorkerConfig
from hogwild.runtimes.processes.write_policies import EpochAveraging, StopRequested, sleep_delay, write_policy

if TYPE_CHECKING:
    from hogwild.runtimes.processes.watched_updates import WatchedUpdates

END = object()  # marker of the end of an epoch's batches
PUBLISH_EVERY = 16  # updates between two publications of a worker's own buffers, and of losses on a GPU


class HogwildWorker:
    """Worker in a process of its own.

    The worker trains on its share of the data, and records its progress in the shared counters. The
    strategy decides about writes: free, locked, in turns, or to parameters of its own that are averaged each epoch.
    """

    def __init__(self, work: WorkerConfig, rank: int, counters: SharedCounters) -> None:
        self.work, self.rank, self.counters = work, rank, counters
        self.net, self.optimiser = work.problem.net, work.optimiser
        self._writes_in_backward = False
        for module in self.net.modules():
            if getattr(module, "updates_in_backward", False):
                module.follow(self.optimiser)
                self._writes_in_backward = True
        self._delays = DelayStream(work.delay, work.seed, rank)
        self.counts, self.flags = counters.counts[rank], counters.flags
        self.policy = write_policy(work.access, rank, counters, self.check_flags)
        self.averaging = EpochAveraging(work, rank, counters, self.check_flags) if work.replicas is not None else None
        # Workers that average at the end of each epoch have buffers of their own in any case.
        keeps_own = work.problem.buffers == "own" and self.averaging is None
        self._shared_buffers = list(self.net.buffers()) if keeps_own else []
        self._own_buffers = [tensor.detach().clone() for tensor in self._shared_buffers]
        self._pending_loss: Any = 0.0  # sum of the losses of samples that is not yet in the shared counters
        self._read_every = 1 if work.problem.device == "cpu" else PUBLISH_EVERY
        self._begun = 0.0
        self._captured = None if work.steps is None else work.steps(work.problem, work.optimiser)
        self._watched = _watched(work, rank)

    def run(self) -> None:
        """Wait for the start signal, and train until the last epoch ends or the supervisor stops the run.

        On a GPU the worker trains in a CUDA stream of its own.
        """
        torch.set_num_threads(self.work.threads)
        if self.work.problem.device == "cpu":
            shared = self.work.workers > 1 and self.work.access == "free"
            with concurrent_steps(self.optimiser) if shared else contextlib.nullcontext():
                self._train()
        else:
            with torch.cuda.device(self.work.problem.device), torch.cuda.stream(_stream()):
                self._train()

    def _train(self) -> None:
        self.net.train()
        self._use_own_buffers()
        self.counts[at.STATE] = at.READY
        while not self.flags[at.GO]:
            self.counters.beat(self.rank)
            time.sleep(0.002)
        self._begun = time.monotonic() - self.work.earlier
        self.counts[at.STATE] = at.TRAINING
        try:
            for epoch in itertools.count(int(self.counts[at.EPOCH])):
                if self.work.epochs is not None and epoch >= self.work.epochs:
                    break
                self._epoch(epoch)
        except StopRequested:
            pass
        if self.averaging is not None:
            self.averaging.publish()
        self._publish()
        flush()  # The supervisor may kill a worker that has finished, so its output is flushed before.
        self.counts[at.STATE] = at.FINISHED
        if self.flags[at.TURN] == self.rank:
            self.counters.pass_turn(self.rank)

    def check_flags(self) -> None:
        """Record a heartbeat, and obey the supervisor's flags: raise ``StopRequested``, or pause.

        A worker calls this method between two updates, and repeatedly while it waits.
        """
        self.counters.beat(self.rank)
        if self.flags[at.STOP]:
            raise StopRequested
        if self.flags[at.PAUSE]:
            self._pause()

    def _pause(self) -> None:
        self._publish()
        self.counts[at.STATE] = at.PAUSED
        while self.flags[at.PAUSE] and not self.flags[at.STOP]:
            self.counters.beat(self.rank)
            time.sleep(0.001)
        self.counts[at.STATE] = at.TRAINING

    # Epochs and updates.

    def _epoch(self, epoch: int) -> None:
        work, done = self.work, int(self.counts[at.BATCH])
        seed_epoch(work, self.rank, epoch, done > 0)
        # The data of a worker that has terminated is divided among the other workers.
        running = list(self.counters.running())
        share = work.problem.share(running.index(self.rank), len(running), epoch, work.seed, work.labels)
        indices = itertools.islice(work.problem.batches(share), done, None)
        batches = iter(work.problem.training.batches(indices))
        # A pause must come before a batch is drawn: drawing may use random numbers, whose state the pause records.
        self.check_flags()
        while (batch := next(batches, END)) is not END:
            self._update(batch)
            self.check_flags()
        if self.averaging is None:
            self._end(epoch)
        else:
            self.averaging.average(lambda: self._end(epoch))

    def _end(self, epoch: int) -> None:
        if not self.counts[at.BATCH]:
            time.sleep(0.001)  # A worker without samples would otherwise count epochs in a busy loop.
        self._read_losses()  # The record of the epoch must have the losses of all its samples.
        self.counts[at.BATCH] = 0
        self.counts[at.EPOCH] = epoch + 1

    def _update(self, batch: object) -> None:
        counts = self.counts
        self._set_steps()
        loss, size = self._step(batch) if self._captured is None else self._captured(batch)
        self._pending_loss += loss.item() * size if self._read_every == 1 else loss.detach() * size
        self.counters.sums[self.rank, at.UNREAD] += size
        counts[at.SAMPLES] += size
        counts[at.STEPS] += 1
        counts[at.BATCH] += 1
        if counts[at.STEPS] % self._read_every == 0:
            self._read_losses()
        if self.work.mean is not None:
            self._average(self.work.mean)
        if self._own_buffers and counts[at.STEPS] % PUBLISH_EVERY == 0:
            self._publish_buffers()

    def _step(self, batch: object) -> tuple[torch.Tensor, int]:
        with self._watched or contextlib.nullcontext():
            loss, size = self.work.problem.loss(batch)
            self.optimiser.zero_grad(set_to_none=True)
            if self._writes_in_backward:
                self._wait()
                loss.backward()
            else:
                loss.backward()
                self.work.problem.clip_gradients(self.optimiser)
                self._wait()
            with self.policy:
                (self._watched or self.optimiser).step()
        return loss, size

    def _wait(self) -> None:
        """Wait for the delay of this update, after the parameters were read and before they are written."""
        sleep_delay(self._delays.next(), self.rank, self.counters)

    def _read_losses(self) -> None:
        """Add the pending losses to the shared counters; raise ``DivergedError`` if their sum is not finite.

        On a GPU this call waits for the pending kernels, so a worker makes it only every ``PUBLISH_EVERY`` updates.
        """
        loss_sum, self._pending_loss = float(self._pending_loss), 0.0
        self.counters.sums[self.rank, at.LOSS] += loss_sum
        self.counters.sums[self.rank, at.UNREAD] = 0
        if not math.isfinite(loss_sum):
            raise DivergedError(f"the loss of a batch is {loss_sum}")

    def _set_steps(self) -> None:
        if self.work.rate.schedule is None:
            return
        steps = self.work.rate(self.counters.samples, time.monotonic() - self._begun)
        if self._captured is not None:
            self._captured.set_rates(steps)
            return
        for group, step in zip(self.optimiser.param_groups, steps, strict=True):
            group["lr"] = step

    # Values that other processes read.

    def _average(self, mean: SharedAverage) -> None:
        """Add the present parameters to the mean of the iterates, if this is the first running worker.

        One worker averages for all, because all workers share the parameters.
        """
        if next(self.counters.working()) != self.rank:
            return
        if mean.decay is None and self._fraction() < mean.begins:
            return
        self.counts[at.AVERAGED] += 1
        # The count includes iterates that an earlier first worker, which has finished or terminated, has added.
        count = self.counters.counts[:, at.AVERAGED].sum()
        share = 1 / count if mean.decay is None else max(1 - mean.decay, 1 / count)
        with torch.no_grad():
            for kept, now in zip(mean.tensors, self.net.parameters(), strict=True):
                kept.lerp_(now, share)

    def _fraction(self) -> float:
        return self.work.rate.spent(self.counters.samples, time.monotonic() - self._begun)

    def _publish(self) -> None:
        """Publish the losses, buffers and random-generator state of this worker; wait for its pending GPU kernels."""
        self._read_losses()
        self._publish_buffers()
        rng_state.write_to(self.work.random[self.rank])
        if self.work.problem.device != "cpu":
            torch.cuda.current_stream().synchronize()

    def _use_own_buffers(self) -> None:
        for module in self.net.modules() if self._own_buffers else ():
            for name, tensor in module._buffers.items():
                for shared, own in zip(self._shared_buffers, self._own_buffers, strict=True):
                    if tensor is shared:
                        module._buffers[name] = own

    def _publish_buffers(self) -> None:
        if self._own_buffers and next(self.counters.running()) == self.rank:
            for shared, own in zip(self._shared_buffers, self._own_buffers, strict=True):
                shared.copy_(own)


def _watched(work: WorkerConfig, rank: int) -> WatchedUpdates | None:
    """Return the counting updates of a worker; None if the run counts no conflicts."""
    if work.conflicts is None:
        return None
    # The import is here, because only counting updates need the kernels of sparse tables.
    from hogwild.runtimes.processes.watched_updates import WatchedUpdates

    return WatchedUpdates(work.conflicts, rank, work.problem.net, work.optimiser)


def _stream() -> torch.cuda.Stream:
    make: Any = torch.cuda.Stream
    stream: torch.cuda.Stream = make()
    return stream


def seed_epoch(work: WorkerConfig, rank: int, epoch: int, within: bool) -> None:
    """Seed a worker's random generators for an epoch.

    A resumed run that continues ``within`` an epoch restores the recorded states of the generators instead.
    """
    rng_state.seed(work.seed, rank, epoch)
    if within and work.resumed:
        rng_state.read_from(work.random[rank])


def run_hogwild_worker(work: WorkerConfig, rank: int, counters: SharedCounters, **_: object) -> None:
    """Run a Hogwild worker in this process."""
    HogwildWorker(work, rank, counters).run()
