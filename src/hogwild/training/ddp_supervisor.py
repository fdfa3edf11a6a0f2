"""Synchronous data-parallel runs: rendezvous of workers, and supervision in a worker started by ``torchrun``."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from hogwild.errors import ParameterError
from hogwild.files import to_jsonable
from hogwild.runtimes.processes import Processes, rng_state
from hogwild.runtimes.processes import shared_counters as at
from hogwild.runtimes.processes.ddp.collectives import (
    Collectives,
    DDPConfig,
    rendezvous_store,
    torchrun_environment,
    translate_errors,
)
from hogwild.runtimes.processes.ddp.worker import CONTINUE, PAUSE, STOP, DDPWorker
from hogwild.runtimes.processes.optimiser_state import state_tensors
from hogwild.stopping import held_out_value
from hogwild.strategies import Strategy, Synchronous
from hogwild.training.module_checkpoints import copy_tensors
from hogwild.training.process_supervisor import ProcessSupervisor


def check_synchronous(runtime: Processes) -> None:
    """Raise ParameterError for runtime options that workers of a synchronous strategy cannot honour."""
    if runtime.on_worker_failure == "continue":
        raise ParameterError(
            "Workers of Synchronous wait for each other, so none can continue without one that crashed: leave out "
            "on_worker_failure='continue', or use Hogwild. A run that stopped goes on from its checkpoint with "
            "resume=True."
        )


def torchrun_rank(strategy: Strategy) -> tuple[int, int] | None:
    """Return the rank of this process and the number of workers, if a launcher started it for a synchronous run.

    Return None for other strategies and without a launcher.
    """
    found = torchrun_environment() if isinstance(strategy, Synchronous) else None
    if found is not None and strategy.workers not in (None, found[1]):
        raise ParameterError(
            f"The launcher has started {found[1]} workers (WORLD_SIZE), and Synchronous(workers={strategy.workers}) "
            "asks for another number. Leave out 'workers'."
        )
    return found


@contextlib.contextmanager
def rendezvous(strategy: Strategy, runtime: Processes, rank: int | None) -> Iterator[DDPConfig | None]:
    """Yield the configuration with which synchronous workers find each other; None for other strategies.

    The supervising process hosts the rendezvous store for the duration of the block. With a launcher (``rank`` is
    given), the launcher's store is used, and the port is 0.
    """
    if not isinstance(strategy, Synchronous):
        yield None
        return
    store = rendezvous_store(runtime.startup_timeout) if rank is None else None
    yield DDPConfig(
        strategy.accumulate, strategy.recipe is None or strategy.recipe.momentum_correction,
        0 if store is None else store.port, runtime.startup_timeout, runtime.heartbeat_timeout,
    )  # fmt: skip
    del store


class InlineEvaluator:
    """Evaluator of held-out data in the process that trains, between two steps."""

    def __init__(self, supervisor: TorchrunSupervisor) -> None:
        self._supervisor, self._feed = supervisor, supervisor.work.problem.feed(supervisor.test)
        self._orders: list[dict[str, Any]] = []

    def send(self, what: dict[str, Any]) -> None:
        """Queue a request for an evaluation."""
        self._orders.append(what)

    def answers(self) -> Iterator[dict[str, Any]]:
        """Evaluate the held-out data for each queued request, and yield the figures."""
        while self._orders:
            order = self._orders.pop(0)
            with self._mean_in_place(order["mean"]):
                figures = self._supervisor.work.problem.measure(self._feed)
                found = held_out_value(
                    {f"test_{name}": each for name, each in figures.items()}, self._supervisor.budget
                )
                if self._supervisor.best is not None and found < order["least"]:
                    copy_tensors(self._supervisor.best, self._supervisor.work.values)
            yield {"kind": "measured", "figures": figures, **order}

    @contextlib.contextmanager
    def _mean_in_place(self, wanted: bool) -> Iterator[None]:
        work = self._supervisor.work
        if not wanted or work.mean is None:
            yield
            return
        parameters = list(work.problem.net.parameters())
        trained = [tensor.detach().clone() for tensor in parameters]
        copy_tensors(parameters, work.mean.tensors)
        try:
            yield
        finally:
            copy_tensors(parameters, trained)


@dataclass(eq=False)
class TorchrunSupervisor(ProcessSupervisor):
    """Supervisor of a synchronous run in which this process is one of the workers.

    No process is started. The worker of rank 0 also evaluates held-out data and writes checkpoints, between two steps.
    The other workers wait meanwhile for its next decision.
    """

    rank: int = 0
    rows: list[int] = field(default_factory=list)

    def run(self) -> None:
        """Train together with the other workers; at the end all have the same model, history and result."""
        work = self.work
        assert work.ddp is not None
        self.rows = list(range(work.workers))
        if self.runtime.threads is not None:
            torch.set_num_threads(self.runtime.threads)
        self._group = Collectives(self.rank, work.workers, work.problem.device, work.ddp)
        try:
            with translate_errors():
                self._train_with_peers()
        finally:
            self._group.close()

    def _train_with_peers(self) -> None:
        self._broadcast_start()
        if self.rank == 0 and self.test is not None:
            self.records.evaluator = InlineEvaluator(self)
        worker = DDPWorker(self.work, self.counters, self._group, self)
        self.event_log.emit("training", workers=self.work.workers)
        self._before = self.counters.counts[:, at.SAMPLES].copy()
        self._began = time.monotonic()
        worker.train()
        self._gather()
        self._ended = time.monotonic()
        self.stop_reason = self.stop_reason or "epochs"
        if self.rank == 0:
            self._conclude()
        self._broadcast_result()

    def _broadcast_start(self) -> None:
        """Copy the model, optimiser state, averages, random states and counters of rank 0 to all workers.

        Only rank 0 reads a checkpoint, and models are not always initialised from the same seed.
        """
        counts, loss = torch.from_numpy(self.counters.counts), torch.from_numpy(self.counters.sums[:, at.LOSS].copy())
        self._group.broadcast_tensors([
            *self.work.values, *state_tensors(self.work.optimiser), *(self.work.mean.tensors if self.work.mean else ()),
            self.work.random, counts, loss,
        ])  # fmt: skip
        self.counters.sums[:, at.LOSS] = loss.numpy()

    # Callbacks of the training loop (DDPWorker)

    def decide(self) -> tuple[int, float]:
        """Return the command for all workers (continue, pause or stop) and the seconds of training.

        Only rank 0 calls this method.
        """
        self._emit_progress()
        if self.interrupt.pressed:
            self._stop("interrupted")
        elif self.budget.seconds is not None and self.seconds >= self.budget.seconds:
            self._stop("seconds")
        due = self.checkpoints is not None and self.checkpoints.due
        return STOP if self.counters.flags[at.STOP] else PAUSE if due else CONTINUE, self.seconds

    def pause(self) -> None:
        """Write a checkpoint in the middle of an epoch."""
        self._gather()
        if self.checkpoints is not None:
            self._write()

    def publish(self) -> None:
        """Do nothing: the worker trains the model of this process itself, so that its parameters are visible."""

    def on_epoch_end(self, epoch: int) -> None:
        """Record the epoch and write a checkpoint; for the last epoch, ``_conclude`` does both."""
        self._gather()
        if self.rank == 0 and epoch != self.budget.epochs:
            self.records.make(epoch, self.seconds)
            self._emit_outstanding_records()

    def waiting(self) -> contextlib.AbstractContextManager[None]:
        """Return an empty context: no supervisor checks heartbeats here, and collectives have their own timeout."""
        return contextlib.nullcontext()

    # Overridden methods of ProcessSupervisor

    def _receive(self, seconds: float = 0.0) -> None:
        evaluator: Any = self.records.evaluator
        for what in evaluator.answers():
            self.records.measured(what)

    def _save(self) -> None:
        self._write()

    def _gather(self) -> None:
        """Collect every worker's row of the shared counters and of the random states on all workers."""
        rng_state.write_to(self.work.random[self.rank])
        for kept in (torch.from_numpy(self.counters.sums[:, at.LOSS]), self.work.random):
            own = torch.zeros_like(kept)
            own[self.rank] = kept[self.rank]
            kept.copy_(self._group.all_reduce_sum(own))

    def _broadcast_result(self) -> None:
        """Copy the parameters, stop reason, history and result of rank 0 to all workers."""
        result = [event for event in self.event_log.events if event["event"] == "result"]
        sent = json.dumps(to_jsonable([self.stop_reason, self.records.history, result]))
        received = json.loads(self._group.broadcast_text(sent))
        self._group.broadcast_tensors(self.work.values)
        if self.rank:
            self.stop_reason, self.records.history, (result,) = received
            self.event_log.emit(result.pop("event"), self._model_parameters, **result)
