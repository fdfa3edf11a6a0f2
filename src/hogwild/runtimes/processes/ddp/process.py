"""Workers that take each step together, each in a process of its own."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import torch

from hogwild.runtimes.processes import rng_state
from hogwild.runtimes.processes import shared_counters as at
from hogwild.runtimes.processes.ddp.collectives import Collectives, translate_errors
from hogwild.runtimes.processes.ddp.worker import GO_ON, PAUSE, STOP, DDPWorker
from hogwild.runtimes.processes.optimiser_state import state_tensors
from hogwild.runtimes.processes.shared_counters import SharedCounters
from hogwild.runtimes.processes.worker_config import WorkerConfig

MOURNING = 5.0  # seconds in which one that died by itself is heard before those who miss it


class DDPProcess:
    """A worker in a process of its own, whose overseer is the process that started it, at the other side of the board.

    What it trains is a copy. The first worker copies that into the memory all have in common when there is something
    to see: at the end of an epoch, and when all pause.
    """

    def __init__(self, work: WorkerConfig, rank: int, board: SharedCounters) -> None:
        self.work, self.rank, self.board = work, rank, board
        self.lines = [rank]
        own = [*work.values, *state_tensors(work.optimiser)]
        self._shared = [tensor.detach() for tensor in own] if rank == 0 else []
        device = _device(work, rank)
        for tensor in own:
            on_gpu = tensor.device.type == "cuda"
            tensor.data = tensor.data.to(device, copy=True) if on_gpu else tensor.data.clone()
        self._own = [tensor.detach() for tensor in own] if rank == 0 else []
        self._begun = 0.0
        self._waits = False

    def run(self) -> None:
        """Meet the others, wait for the start, and train."""
        torch.set_num_threads(self.work.threads)
        assert self.work.together is not None
        device = self.work.problem.device
        if device.startswith("cuda"):
            torch.cuda.set_device(device)
        group = Collectives(self.rank, self.work.workers, device, self.work.together)
        rank = DDPWorker(self.work, self.board, group, self)
        threading.Thread(
            target=self._beat_while_waiting, args=(self.work.together.heartbeat_timeout,), daemon=True
        ).start()
        mine, flags = self.board.counts[self.rank], self.board.flags
        mine[at.STATE] = at.READY
        while not flags[at.GO]:
            self._rest(0.002)
        self._begun = time.monotonic() - self.work.earlier
        mine[at.STATE] = at.TRAINING
        rank.train()
        self.show()
        rng_state.write_to(self.work.random[self.rank])
        mine[at.STATE] = at.FINISHED
        while not all(state == at.FINISHED for state in self.board.states()):  # they may still wait for our last word
            self._rest(0.001)
        group.leave()

    def decide(self) -> tuple[int, float]:
        flags = self.board.flags
        return STOP if flags[at.STOP] else PAUSE if flags[at.PAUSE] else GO_ON, time.monotonic() - self._begun

    def pause(self) -> None:
        self.show()
        rng_state.write_to(self.work.random[self.rank])
        self.board.counts[self.rank, at.STATE] = at.PAUSED
        while self.board.flags[at.PAUSE] and not self.board.flags[at.STOP]:
            self._rest(0.001)
        self.board.counts[self.rank, at.STATE] = at.TRAINING

    def show(self) -> None:
        for shared, own in zip(self._shared, self._own, strict=True):
            shared.copy_(own)

    def epoch_over(self, epoch: int) -> None:
        """The board has it."""

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        self._waits = True
        yield
        self._waits = False

    def _beat_while_waiting(self, silence: float) -> None:
        """When one is silent, all wait for it: only that one shall seem dead."""
        while True:
            if self._waits:
                self.board.beat(self.rank)
            time.sleep(min(0.5, silence / 4))

    def _rest(self, seconds: float) -> None:
        self.board.beat(self.rank)
        time.sleep(seconds)


def run_ddp_worker(work: WorkerConfig, rank: int, board: SharedCounters, **_: Any) -> None:
    """Be a worker."""
    with translate_errors(MOURNING):
        DDPProcess(work, rank, board).run()


def _device(work: WorkerConfig, rank: int) -> str:
    """A GPU of one's own where there are enough, else the one that the model is on."""
    device: str = work.problem.device
    if device.startswith("cuda") and torch.cuda.device_count() >= work.workers:
        return f"cuda:{rank}"
    return device
