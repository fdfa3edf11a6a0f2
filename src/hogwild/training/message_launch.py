"""Launch of a message-passing strategy on a runtime, and its checkpoints: consistent snapshots of all nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hogwild.errors import CheckpointError, DivergedError, ParameterError, WorkerError
from hogwild.events import EventLog, Parameters, Record
from hogwild.messaging.deltas import Floats
from hogwild.messaging.job import LocalTrainer, MessageJob, Outcome, RunConfig
from hogwild.messaging.messages import worker
from hogwild.messaging.state_codec import joined, split
from hogwild.runtimes.messaging.injected_faults import Crash
from hogwild.runtimes.runtime import Runtime
from hogwild.stopping import Budget, deferred_sigint
from hogwild.strategies.strategy import Strategy
from hogwild.training.checkpoints import check_same
from hogwild.training.job import Job
from hogwild.training.run_report import summary

KIND = "messages"


class MessageCheckpointer:
    """Writer of a run's snapshots, and reader of the last snapshot of the run that it resumes."""

    def __init__(self, job: Job) -> None:
        self.checkpoints, resume = job.checkpoints, job.options.resume
        found = self.checkpoints.load() if resume and self.checkpoints is not None else None
        self._arrays, self._record = found or ({}, {})
        self._virtual = job.runtime.simulated_time
        self.resume, self.config = resume, dict[str, Any]()
        self.more: dict[str, Any] = {}  # values that the driver stores in the checkpoint beside the snapshot
        self._event_log: EventLog | None = None

    @property
    def step(self) -> float | None:
        """The step size that the resumed run had chosen; None if there is none."""
        return self._record.get("step")

    @property
    def history(self) -> list[Record]:
        """The records of the epochs before the checkpoint."""
        return list(self._record.get("history", []))

    def begin(self, config: Mapping[str, Any], event_log: EventLog) -> None:
        """Check that the checkpoint belongs to the same run, and emit the epoch from which the run resumes."""
        self.config, self._event_log = dict(config), event_log
        at = {"at": 0.0} if self._virtual else {}
        if self._record:
            assert self.checkpoints is not None
            check_same(self.config, self._record.get("config", {}), self.checkpoints.folder)
            if self._record.get("by") != KIND:
                raise CheckpointError(f"{self.checkpoints.folder}: the checkpoint is not of a run by messages.")
            event_log.emit("resumed", epoch=self.history[-1]["epoch"], **at)
        elif self.resume:
            event_log.emit("resumed", epoch=0, message="there is no checkpoint yet: from the beginning", **at)

    @property
    def found(self) -> dict[str, Any] | None:
        """The snapshot from which the run resumes; None if it starts from the beginning."""
        if not self._record:
            return None
        try:
            cut: dict[str, Any] = joined(self._record["cut"], self._arrays)
        except (KeyError, TypeError) as reason:
            raise CheckpointError(f"The checkpoint is incomplete or inconsistent ({reason}).") from None
        return cut

    def save(self, cut: dict[str, Any]) -> None:
        """Write a snapshot as a checkpoint."""
        assert self.checkpoints is not None
        assert self._event_log is not None
        arrays: dict[str, Any] = {}
        history = self.history + epochs(self._event_log)
        record = {"by": KIND, "config": self.config, "history": history, "cut": split(cut, arrays), **self.more}
        self.checkpoints.save(arrays, record)
        at = {"at": round(cut["seconds"], 9)} if self._virtual else {}
        self._event_log.emit("checkpoint", epoch=history[-1]["epoch"], **at)


def epochs(event_log: EventLog) -> list[Record]:
    """Return the epoch records of an event log."""
    return [event for event in event_log.events if event["event"] == "epoch"]


STOPPED = ("epochs", "target", "patience", "seconds", "interrupted")


@dataclass(frozen=True, slots=True, eq=False)
class LocalTask:
    """Training task in a form that can be sent to other processes.

    The task has the initial parameter vector, the terms of an epoch, the trainer of each worker, and the evaluation.
    """

    start: Floats
    parameters: int  # number of parameters: the leading entries of the vector, before buffers or the state of the rule
    epoch: int  # terms of an epoch, over all workers
    make_trainer: Callable[[int], LocalTrainer]
    measure: Callable[[Floats], dict[str, float]]
    read: Callable[[Floats], Parameters]  # from the vector that nodes exchange to the parameters of the model
    cores: int = 1  # cores that train each burst together


def run_message_strategy(
    task: LocalTask, strategy: Any, runtime: Any, workers: int, budget: Budget, average: float, seed: int, event_log:
    EventLog, keeper: MessageCheckpointer,
) -> Outcome:  # fmt: skip
    """Run a message-passing strategy to its end, and return its outcome.

    Raises
    ------
    DivergedError
        If the loss is not finite.
    KeyboardInterrupt
        If the user interrupts the run before it has parameters to return.
    WorkerError
        If the run cannot be finished for another reason.
    """
    goal = None if budget.epochs is None else budget.epochs * task.epoch
    config = RunConfig(
        workers, task.start, task.epoch, goal, average, budget, budget.seconds,
        runtime.stall_timeout, frozenset(runtime.join_times), task.parameters,
        keeper.checkpoints is not None,
    )  # fmt: skip
    check(strategy, runtime, config, average)

    def emit(event: str, seconds: float, values: Floats | None = None, **what: Any) -> None:
        if event == "progress":
            fraction = what["terms"] / goal if goal else seconds / (budget.seconds or math.inf)
            what["fraction"] = min(1.0, fraction)
        at = {"at": round(seconds, 9)} if runtime.simulated_time else {}
        event_log.emit(event, None if values is None else partial(task.read, values), **at, seconds=seconds, **what)

    with deferred_sigint() as interrupt:
        job = MessageJob(
            config, strategy.roles(config), task.make_trainer, task.measure, emit, seed,
            lambda: bool(interrupt.pressed), task.cores, keeper.save if config.saves else None, keeper.found,
        )  # fmt: skip
        outcome: Outcome = runtime.play(job)
    at = {"at": round(outcome.seconds, 9)} if runtime.simulated_time else {}
    for event, what in summary(outcome):
        event_log.emit(event, **at, **what)
    if outcome.values is None:
        raise _failure(outcome)
    read = partial(task.read, outcome.values)
    event_log.emit("result", read, **at, stop_reason=outcome.reason, **outcome.record)
    return outcome


def check(strategy: Strategy, runtime: Runtime, config: RunConfig, average: float) -> None:
    """Check strategy, runtime and budget before any node starts.

    Raises
    ------
    ParameterError
        With the reason, and the option to change.
    """
    if average and config.goal is None:
        raise ParameterError("To average over the last share of a run, its length must be known: give it epochs.")
    named = runtime.mentioned_workers
    if any(number >= config.workers for number in named):
        raise ParameterError(f"There are workers 0 to {config.workers - 1}; {max(named)} is none of them.")
    if len(config.late) >= config.workers:
        raise ParameterError("At least one worker must start at once: 'join_times' names all of them.")
    names = {fault.who for fault in runtime.faults if isinstance(fault, Crash)}
    unknown = sorted(names - set(strategy.roles(config)))
    if unknown:
        raise ParameterError(f"There is no node {unknown[0]!r}: workers are {worker(0)!r}, {worker(1)!r} and so on.")
    if config.size == 0 or not np.isfinite(config.start).all():
        raise ParameterError("The parameters to start from must be finite numbers, at least one.")


def _failure(outcome: Outcome) -> BaseException:
    if outcome.reason == "diverged":
        return DivergedError(
            "The loss is not a number any more: delayed changes were too large. Give a smaller step, exchange more "
            "often, or combine by the mean."
        )
    if outcome.reason == "interrupted":
        return KeyboardInterrupt()
    return WorkerError(f"The run could not be finished: {outcome.reason}.")
