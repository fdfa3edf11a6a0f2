"""Synchronous worker in a process of its own, under a supervisor in the calling process."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

import torch

from hogwild.runtimes.processes import rng_state
from hogwild.runtimes.processes import shared_counters as at
from hogwild.runtimes.processes.ddp.collectives import Collectives, translate_errors
from hogwild.runtimes.processes.ddp.worker import CONTINUE, PAUSE, STOP, DDPWorker
from hogwild.runtimes.processes.optimiser_state import state_tensors
from hogwild.runtimes.processes.shared_counters import SharedCounters
from hogwild.runtimes.processes.worker_config import WorkerConfig

# Seconds by which a worker delays the report of a lost peer, so that the peer's own error comes first.
ERROR_GRACE_SECONDS = 5.0


class DDPProcess:
    """Synchronous worker in a process of its own; its supervisor is the process that started it.

    Worker and supervisor communicate through the shared counters. The worker trains a copy of the model.
    Worker 0 copies its model to shared memory at the end of each epoch, at each pause, and at the end of the run.
    """

    def __init__(self, work: WorkerConfig, rank: int, counters: SharedCounters) -> None:
        self.work, self.rank, self.counters = work, rank, counters
        self.rows = [rank]
        own = [*work.values, *state_tensors(work.optimiser)]
        self._shared = [tensor.detach() for tensor in own] if rank == 0 else []
        device = _device(work, rank)
        for tensor in own:
            on_gpu = tensor.device.type == "cuda"
            tensor.data = tensor.data.to(device, copy=True) if on_gpu else tensor.data.clone()
        self._own = [tensor.detach() for tensor in own] if rank == 0 else []
        self._begun = 0.0
        self._waiting = False

    def run(self) -> None:
        """Connect to the other workers, wait for the start signal, and train."""
        torch.set_num_threads(self.work.threads)
        assert self.work.ddp is not None
        device = self.work.problem.device
        if device.startswith("cuda"):
            torch.cuda.set_device(device)
        group = Collectives(self.rank, self.work.workers, device, self.work.ddp)
        worker = DDPWorker(self.work, self.counters, group, self)
        threading.Thread(target=self._beat_while_waiting, args=(self.work.ddp.heartbeat_timeout,), daemon=True).start()
        counts, flags = self.counters.counts[self.rank], self.counters.flags
        counts[at.STATE] = at.READY
        while not flags[at.GO]:
            self._beat_and_sleep(0.002)
        self._begun = time.monotonic() - self.work.earlier
        counts[at.STATE] = at.TRAINING
        worker.train()
        self.publish()
        rng_state.write_to(self.work.random[self.rank])
        counts[at.STATE] = at.FINISHED
        # The other workers may still take part in a collective operation that needs this worker's connections.
        while not all(state == at.FINISHED for state in self.counters.states()):
            self._beat_and_sleep(0.001)
        group.close()

    def decide(self) -> tuple[int, float]:
        """Return the supervisor's decision (``STOP``, ``PAUSE`` or ``CONTINUE``), and the seconds of training."""
        flags = self.counters.flags
        return STOP if flags[at.STOP] else PAUSE if flags[at.PAUSE] else CONTINUE, time.monotonic() - self._begun

    def pause(self) -> None:
        """Publish the model and the random generators' state, and wait until the supervisor ends the pause."""
        self.publish()
        rng_state.write_to(self.work.random[self.rank])
        self.counters.counts[self.rank, at.STATE] = at.PAUSED
        while self.counters.flags[at.PAUSE] and not self.counters.flags[at.STOP]:
            self._beat_and_sleep(0.001)
        self.counters.counts[self.rank, at.STATE] = at.TRAINING

    def publish(self) -> None:
        """Copy the model and the optimiser's state to shared memory, if this is worker 0."""
        for shared, own in zip(self._shared, self._own, strict=True):
            shared.copy_(own)

    def on_epoch_end(self, epoch: int) -> None:
        """Do nothing: the supervisor reads the epoch from the shared counters."""

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Mark a block in which this worker waits for the other workers; heartbeats continue within the block."""
        self._waiting = True
        yield
        self._waiting = False

    def _beat_while_waiting(self, heartbeat_timeout: float) -> None:
        """Record heartbeats while this worker waits for the other workers.

        When one worker hangs, all others wait for it. Only the worker that hangs may time out.
        """
        while True:
            if self._waiting:
                self.counters.beat(self.rank)
            time.sleep(min(0.5, heartbeat_timeout / 4))

    def _beat_and_sleep(self, seconds: float) -> None:
        self.counters.beat(self.rank)
        time.sleep(seconds)


def run_ddp_worker(work: WorkerConfig, rank: int, counters: SharedCounters, **_: object) -> None:
    """Run a synchronous worker in this process."""
    with translate_errors(ERROR_GRACE_SECONDS):
        DDPProcess(work, rank, counters).run()


def _device(work: WorkerConfig, rank: int) -> str:
    """Return a GPU of the worker's own if there are as many GPUs as workers, else the device of the model."""
    device: str = work.problem.device
    if device.startswith("cuda") and torch.cuda.device_count() >= work.workers:
        return f"cuda:{rank}"
    return device
