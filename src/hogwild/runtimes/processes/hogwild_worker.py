"""Hogwild worker process (Recht et al. 2011): draws batches, updates the model, and counts its progress."""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from typing import Any

import torch

from hogwild.errors import DivergedError
from hogwild.runtimes.processes import rng_state
from hogwild.runtimes.processes import shared_counters as at
from hogwild.runtimes.processes.atomic_optimiser_step import concurrent_steps
from hogwild.runtimes.processes.child_main import flush
from hogwild.runtimes.processes.shared_counters import SharedCounters
from hogwild.runtimes.processes.worker_config import IterateAverage, WorkerConfig
from hogwild.runtimes.processes.write_policies import EpochAveraging, StopRequested, write_policy

END = object()  # marker of the end of an epoch's batches
OFTEN = 16  # updates between two publications of a worker's own buffers, and of losses on a GPU


class HogwildWorker:
    """Worker in a process of its own.

    The worker trains on its share of the data, and records its progress in the shared counters (``board``). The
    strategy decides about writes: free, locked, in turns, or to parameters of its own that are averaged each epoch.
    """

    def __init__(self, work: WorkerConfig, rank: int, board: SharedCounters) -> None:
        self.work, self.rank, self.board = work, rank, board
        self.net, self.optimiser = work.problem.net, work.optimiser
        for module in self.net.modules():
            if getattr(module, "updates_in_backward", False):
                module.follow(self.optimiser)
        self.mine, self.flags = board.counts[rank], board.flags
        self.sharing = write_policy(work.access, rank, board, self.rest)
        self.meeting = EpochAveraging(work, rank, board, self.rest) if work.replicas is not None else None
        # Workers that average at the end of each epoch have buffers of their own in any case.
        keeps_own = work.problem.buffers == "own" and self.meeting is None
        self._shown = list(self.net.buffers()) if keeps_own else []
        self._own = [tensor.detach().clone() for tensor in self._shown]
        self._met: Any = 0.0  # sum of the losses of samples that is not yet in the shared counters
        self._read_every = 1 if work.problem.device == "cpu" else OFTEN
        self._begun = 0.0
        self._whole = None if work.steps is None else work.steps(work.problem, work.optimiser)

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
        self._have_own_buffers()
        self.mine[at.STATE] = at.READY
        while not self.flags[at.GO]:
            self.board.beat(self.rank)
            time.sleep(0.002)
        self._begun = time.monotonic() - self.work.earlier
        self.mine[at.STATE] = at.TRAINING
        try:
            for epoch in itertools.count(int(self.mine[at.EPOCH])):
                if self.work.epochs is not None and epoch >= self.work.epochs:
                    break
                self._epoch(epoch)
        except StopRequested:
            pass
        if self.meeting is not None:
            self.meeting.bring()
        self._settle()
        flush()  # The supervisor may kill a worker that has finished, so its output is flushed before.
        self.mine[at.STATE] = at.FINISHED
        if self.flags[at.TURN] == self.rank:
            self.board.pass_turn(self.rank)

    def rest(self) -> None:
        """Record a heartbeat, and obey the supervisor's flags: raise ``StopRequested``, or pause.

        A worker calls this method between two updates, and repeatedly while it waits.
        """
        self.board.beat(self.rank)
        if self.flags[at.STOP]:
            raise StopRequested
        if self.flags[at.PAUSE]:
            self._pause()

    def _pause(self) -> None:
        self._settle()
        self.mine[at.STATE] = at.PAUSED
        while self.flags[at.PAUSE] and not self.flags[at.STOP]:
            self.board.beat(self.rank)
            time.sleep(0.001)
        self.mine[at.STATE] = at.TRAINING

    # Epochs and updates.

    def _epoch(self, epoch: int) -> None:
        work, done = self.work, int(self.mine[at.BATCH])
        seed_epoch(work, self.rank, epoch, done > 0)
        # The data of a worker that has terminated is divided among the other workers.
        living = list(self.board.living())
        share = work.problem.share(living.index(self.rank), len(living), epoch, work.seed, work.labels)
        indices = itertools.islice(work.problem.batches(share), done, None)
        batches = iter(work.problem.training.batches(indices))
        # A pause must come before a batch is drawn: drawing may use random numbers, whose state the pause records.
        self.rest()
        while (batch := next(batches, END)) is not END:
            self._update(batch)
            self.rest()
        if self.meeting is None:
            self._end(epoch)
        else:
            self.meeting.average(lambda: self._end(epoch))

    def _end(self, epoch: int) -> None:
        if not self.mine[at.BATCH]:
            time.sleep(0.001)  # A worker without samples would otherwise count epochs in a busy loop.
        self._read_losses()  # The record of the epoch must have the losses of all its samples.
        self.mine[at.BATCH] = 0
        self.mine[at.EPOCH] = epoch + 1

    def _update(self, batch: Any) -> None:
        mine = self.mine
        self._set_steps()
        loss, size = self._step(batch) if self._whole is None else self._whole(batch)
        self._met += loss.item() * size if self._read_every == 1 else loss.detach() * size
        self.board.sums[self.rank, at.UNREAD] += size
        mine[at.SAMPLES] += size
        mine[at.STEPS] += 1
        mine[at.BATCH] += 1
        if mine[at.STEPS] % self._read_every == 0:
            self._read_losses()
        if self.work.mean is not None:
            self._average(self.work.mean)
        if self._own and mine[at.STEPS] % OFTEN == 0:
            self._show_buffers()

    def _step(self, batch: Any) -> tuple[torch.Tensor, int]:
        loss, size = self.work.problem.loss(batch)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        with self.sharing:
            self.optimiser.step()
        return loss, size

    def _read_losses(self) -> None:
        """Add the pending losses to the shared counters; raise ``DivergedError`` if their sum is not finite.

        On a GPU this call waits for the pending kernels, so a worker makes it only every ``OFTEN`` updates.
        """
        met, self._met = float(self._met), 0.0
        self.board.sums[self.rank, at.LOSS] += met
        self.board.sums[self.rank, at.UNREAD] = 0
        if not math.isfinite(met):
            raise DivergedError(f"the loss of a batch is {met}")

    def _set_steps(self) -> None:
        if self.work.rate.schedule is None:
            return
        steps = self.work.rate(self.board.samples, time.monotonic() - self._begun)
        if self._whole is not None:
            self._whole.set_rates(steps)
            return
        for group, step in zip(self.optimiser.param_groups, steps, strict=True):
            group["lr"] = step

    # Values that other processes read.

    def _average(self, mean: IterateAverage) -> None:
        """Add the present parameters to the mean of the iterates, if this is the first running worker.

        One worker averages for all, because all workers share the parameters.
        """
        if next(self.board.working()) != self.rank:
            return
        if mean.decay is None and self._fraction() < mean.begins:
            return
        self.mine[at.AVERAGED] += 1
        # The count includes iterates that an earlier first worker, which has finished or terminated, has added.
        count = self.board.counts[:, at.AVERAGED].sum()
        share = 1 / count if mean.decay is None else max(1 - mean.decay, 1 / count)
        with torch.no_grad():
            for kept, now in zip(mean.tensors, self.net.parameters(), strict=True):
                kept.lerp_(now, share)

    def _fraction(self) -> float:
        return self.work.rate.spent(self.board.samples, time.monotonic() - self._begun)

    def _settle(self) -> None:
        """Publish the losses, buffers and random-generator state of this worker; wait for its pending GPU kernels."""
        self._read_losses()
        self._show_buffers()
        rng_state.write_to(self.work.random[self.rank])
        if self.work.problem.device != "cpu":
            torch.cuda.current_stream().synchronize()

    def _have_own_buffers(self) -> None:
        for module in self.net.modules() if self._own else ():
            for name, tensor in module._buffers.items():
                for shared, own in zip(self._shown, self._own, strict=True):
                    if tensor is shared:
                        module._buffers[name] = own

    def _show_buffers(self) -> None:
        if self._own and next(self.board.living()) == self.rank:
            for shared, own in zip(self._shown, self._own, strict=True):
                shared.copy_(own)


def _stream() -> Any:
    make: Any = torch.cuda.Stream
    return make()


def seed_epoch(work: WorkerConfig, rank: int, epoch: int, within: bool) -> None:
    """Seed a worker's random generators for an epoch.

    A resumed run that continues ``within`` an epoch restores the recorded states of the generators instead.
    """
    rng_state.seed(work.seed, rank, epoch)
    if within and work.resumed:
        rng_state.read_from(work.random[rank])


def run_hogwild_worker(work: WorkerConfig, rank: int, board: SharedCounters, **_: Any) -> None:
    """Run a Hogwild worker in this process."""
    HogwildWorker(work, rank, board).run()
