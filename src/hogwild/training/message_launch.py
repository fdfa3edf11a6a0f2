"""Launch of a message-passing strategy on a runtime, and its checkpoints: consistent snapshots of all nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.errors import CheckpointError, DivergedError, ParameterError, WorkerError
from hogwild.events import EventLog, Parameters, Record
from hogwild.iterate_average import EMA
from hogwild.messaging.compiled_job import CompiledJob, CompiledRows
from hogwild.messaging.deltas import Floats
from hogwild.messaging.job import LocalTrainer, MessageJob, Outcome, RunConfig
from hogwild.messaging.messages import worker
from hogwild.messaging.state_codec import joined, split
from hogwild.runtimes.messaging.injected_faults import Crash
from hogwild.runtimes.runtime import Runtime
from hogwild.schedules import Schedule
from hogwild.schedules.schedule import positive_step
from hogwild.signals import deferred_interrupts
from hogwild.stopping import Budget, DivergenceGuard, RecordInterval
from hogwild.strategies.strategy import Strategy
from hogwild.training.checkpoints import check_same, completed
from hogwild.training.job import Job, warn_if_worse
from hogwild.training.run_report import summary

KIND = "messages, by coordinates"  # of checkpoints; those of earlier versions have other orders of values


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
    def interval(self) -> int | None:
        """The number of updates between two exchanges that the resumed run had chosen; None if there is none."""
        return self._record.get("interval")

    @property
    def in_rounds(self) -> bool:
        """Whether the workers of the resumed run exchanged in rounds because of its rule."""
        return bool(self._record.get("in_rounds", False))

    @property
    def resumes(self) -> bool:
        """Whether the run continues from a checkpoint."""
        return bool(self._record)

    @property
    def renumbered(self) -> bool:
        """Whether the resumed run had features numbered by frequency."""
        return bool(self._record.get("renumbered", False))

    @property
    def sums_changes(self) -> bool:
        """Whether the workers of the resumed run kept their parameters at an interval that was given."""
        return bool(self._record.get("sums_changes", False))

    @property
    def halvings(self) -> int:
        """The number of times that the resumed run had halved its step size after divergences."""
        return int(self._record.get("halvings", 0))

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
            epoch, most = self.history[-1]["epoch"], config.get("epochs")
            end = completed(epoch, "epochs" if most is not None and epoch >= most else "")
            event_log.emit("resumed", epoch=epoch, **at, **end)
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
    """Return the epoch records of an event log, since the last divergence."""
    records: list[Record] = []
    for event in event_log.events:
        if event["event"] == "epoch":
            records.append(event)
        elif event["event"] == "diverged":
            records = []
    return records


STOPPED = ("epochs", "target", "patience", "seconds", "interrupted")


@dataclass(frozen=True, slots=True, eq=False)
class LocalTask:
    """Training task in a form that can be sent to other processes.

    The task has the initial parameter vector, the terms of an epoch, the trainer of each worker, and the evaluation.
    """

    start: Floats
    parameters: slice  # the entries that are parameters, beside buffers or the state of the rule
    epoch: int  # terms of an epoch, over all workers
    make_trainer: Callable[[int], LocalTrainer]
    measure: Callable[[Floats, bool], dict[str, float]]  # exactly, or on a sample of large training data
    read: Callable[[Floats], Parameters]  # from the vector that nodes exchange to the parameters of the model
    cores: int = 1  # cores that train each burst together
    resident: bool = False  # whether trainers keep their parameters between bursts
    group: int = 1  # number of consecutive values that one server has
    holds_back: bool = False  # whether trainers keep some changes for later exchanges
    compiled_rows: CompiledRows | None = None  # the rows for a compiled event loop of a simulator, if there is one
    folders: Mapping[int, Sequence[Path]] = field(default_factory=dict)  # that a worker's machine must have


def run_message_strategy(
    make_task: Callable[[float], LocalTask], job: Job, schedule: Schedule | None, budget: Budget, event_log: EventLog,
    keeper: MessageCheckpointer,
) -> Outcome:  # fmt: skip
    """Run a message-passing strategy to its end, and return its outcome.

    If the loss diverges, the run begins again with half the step size, up to five times. Workers hold different
    parameters at different times, so that there is no common state of a moment before the divergence to return to.

    Parameters
    ----------
    make_task : callable
        Function that makes the training task, with a factor of all step sizes as argument.
    job : Job
        Strategy, runtime and options of the run.
    schedule : Schedule or None
        Schedule with a step size; None leaves the step size to the optimiser of a ``Module``.
    budget : Budget
        Limits of the run.
    event_log : EventLog
        Log of the events of the run.
    keeper : MessageCheckpointer
        Writer of checkpoints, and reader of the one from which the run resumes.

    Returns
    -------
    Outcome
        Parameters, counters and traffic of the run.

    Raises
    ------
    DivergedError
        If the loss diverges again after five halvings of the step size, or when the time is over.
    KeyboardInterrupt
        If the user interrupts the run before it has parameters to return.
    WorkerError
        If the run cannot be finished for another reason.
    """
    guard = DivergenceGuard(math.nan, keeper.halvings, job.options.divergence_factor)
    task = make_task(guard.scale)
    at_start = task.measure(task.start, job.options.init is not None)
    guard.start = at_start["loss"]
    config = _config(task, job, schedule, budget, guard.limit)
    check(job.strategy, job.runtime, config)
    earlier = 0.0  # seconds of the attempts that have diverged
    while (outcome := _play(task, job, config, earlier, event_log, keeper)).reason == "diverged":
        earlier = outcome.seconds
        left = None if budget.seconds is None else budget.seconds - earlier
        if left is not None and left <= 0:
            raise DivergedError("The loss exploded, and there is no time left to begin again: give a smaller step.")
        task, config = make_task(guard.halve()), replace(config, seconds=left)
        keeper.more["halvings"] = guard.halvings
        event_log.emit(
            "diverged", epoch=(epochs(event_log) or [{"epoch": 0}])[-1]["epoch"], scale=guard.scale,
            message="the loss exploded: from the beginning, with half the step", **_time_of(outcome, job.runtime),
        )  # fmt: skip
    at = _time_of(outcome, job.runtime)
    for event, what in summary(outcome):
        event_log.emit(event, **at, **what)
    if outcome.values is None:
        raise _failure(outcome)
    warn_if_worse(at_start.get("test_loss", guard.start), outcome.record, event_log, **at)
    read = partial(task.read, outcome.values)
    event_log.emit("result", read, **at, stop_reason=outcome.reason, **outcome.record)
    return outcome


def _config(task: LocalTask, job: Job, schedule: Schedule | None, budget: Budget, loss_limit: float) -> RunConfig:
    """Return the configuration that all nodes of a run have."""
    runtime, average = job.runtime, job.options.average
    # Where a reply is there at once, fresher parameters are worth the wait.
    usual = 0 if task.holds_back and runtime.replies_at_once else runtime.run_ahead
    ahead = job.strategy.run_ahead
    assert not isinstance(average, EMA)
    return RunConfig(
        workers=job.workers,
        start=task.start,
        epoch=task.epoch,
        goal=None if budget.epochs is None else budget.epochs * task.epoch,
        average=average,
        budget=budget,
        seconds=budget.seconds,
        silence=runtime.stall_timeout,
        late=frozenset(runtime.join_times),
        parameters=task.parameters,
        saves=job.checkpoints is not None,
        run_ahead=usual if ahead is None else ahead,
        resident=task.resident,
        group=task.group,
        holds_back=task.holds_back,
        every=RecordInterval.parse(job.options.every),
        seed=job.options.seed,
        loss_limit=loss_limit,
        stall_scales=() if schedule is None else stall_scales(schedule),
    )


def _play(
    task: LocalTask, job: Job, config: RunConfig, earlier: float, event_log: EventLog, keeper: MessageCheckpointer
) -> Outcome:
    """Run a task once, until it ends or diverges; ``earlier`` seconds are added to all times."""
    goal, limit, simulated = config.goal, config.seconds, job.runtime.simulated_time

    def emit(event: str, seconds: float, values: Floats | None = None, **what: Any) -> None:
        if event == "progress":
            fraction = what["terms"] / goal if goal else seconds / (limit or math.inf)
            what["fraction"] = min(1.0, fraction)
        seconds += earlier
        at = {"at": round(seconds, 9)} if simulated else {}
        event_log.emit(event, None if values is None else partial(task.read, values), **at, seconds=seconds, **what)

    with deferred_interrupts() as interrupt:
        message_job = MessageJob(
            config, job.strategy.roles(config), task.make_trainer, task.measure, emit, config.seed,
            lambda: bool(interrupt.pressed), task.cores, keeper.save if config.saves else None, keeper.found,
            _compiled(task, job.strategy, config),
            task.folders,
        )  # fmt: skip
        outcome = job.runtime.play(message_job)
    return replace(outcome, seconds=earlier + outcome.seconds)


def _compiled(task: LocalTask, strategy: Strategy, config: RunConfig) -> CompiledJob | None:
    """Return the run for a compiled event loop; None if the strategy, the task or the trainers have none."""
    server, rows = strategy.plain_server(config), task.compiled_rows
    return None if server is None or rows is None else CompiledJob(server, rows)


def _time_of(outcome: Outcome, runtime: Runtime) -> dict[str, float]:
    return {"at": round(outcome.seconds, 9)} if runtime.simulated_time else {}


def stall_scales(schedule: Schedule) -> tuple[float, ...]:
    """Return the factors of the step size after each stall of the objective, for a schedule that waits for stalls.

    >>> from hogwild.schedules import Adaptive, Constant
    >>> stall_scales(Adaptive(step=0.1, factor=10.0, least=0.001)), stall_scales(Constant(0.1))
    ((0.1, 0.01), ())
    """
    scales, following = [], schedule.after_stall()
    while following is not None:
        scales.append(round(positive_step(following) / positive_step(schedule), 12))
        following = following.after_stall()
    return tuple(scales)


def check(strategy: Strategy, runtime: Runtime, config: RunConfig) -> None:
    """Check strategy, runtime and budget before any node starts.

    Raises
    ------
    ParameterError
        With the reason, and the option to change.
    """
    if config.average and config.goal is None:
        raise ParameterError("To average over the last share of a run, its length must be known: give it epochs.")
    runtime.check_workers(config.workers)
    if len(config.late) >= config.workers:
        raise ParameterError("At least one worker must start at once: 'join_times' names all of them.")
    names = {fault.who for fault in runtime.faults if isinstance(fault, Crash)}
    unknown = sorted(names - set(strategy.roles(config)))
    if unknown:
        raise ParameterError(f"There is no node {unknown[0]!r}: workers are {worker(0)!r}, {worker(1)!r} and so on.")
    if config.size == 0 or not np.isfinite(config.start).all():
        raise ParameterError("The parameters to start from must be finite numbers, at least one.")


def _failure(outcome: Outcome) -> BaseException:
    if outcome.reason == "interrupted":
        return KeyboardInterrupt()
    return WorkerError(f"The run could not be finished: {outcome.reason}.")
