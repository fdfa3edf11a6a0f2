"""Job: one call of ``minimise`` with all its parts resolved, the defaults of its arguments, and its driver."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, cast

import numpy as np

from hogwild import runtimes, strategies
from hogwild.data import as_dataset
from hogwild.data import open as open_data
from hogwild.data.dataset import Dataset
from hogwild.data.reader import ReadOptions
from hogwild.destination import named_path
from hogwild.errors import ParameterError
from hogwild.events import Callback, EventLog, Record
from hogwild.iterate_average import EMA
from hogwild.problems.problem import Problem, RowProblem
from hogwild.registry import invalid_parameter, is_number
from hogwild.run import CHECKPOINTS, Run, WarmStart
from hogwild.runtimes.runtime import Runtime
from hogwild.schedules import Optimal, Schedule, step_of, with_base, with_step, with_total
from hogwild.stopping import DIVERGENCE_FACTOR, Budget, budget_of
from hogwild.strategies.strategy import Strategy
from hogwild.training.checkpoints import Checkpoints
from hogwild.training.run_folder import recorded
from hogwild.training.step_search import choose_step

TRIED_EPOCHS = 10  # number of epochs that trials of the step size assume if the budget limits only seconds


def load_initial_state(init: WarmStart, state: Any) -> None:
    """Copy a warm start into the state of a run.

    A warm start that has values alone leaves the other columns of the state as the rule initialises them. Of the state
    of a rule with dual variables, which are the third part, only the values are taken.
    """
    found = init.state if len(init.state) == len(state) else tuple(part[:, :1] for part in init.state[: len(state)])
    if len(found) != len(state):
        raise invalid_parameter("init", f"of {len(state)} arrays", len(found))
    for part, given in zip(state, found, strict=True):
        given = np.asarray(given, part.dtype)
        if given.shape not in (part.shape, (len(part), 1)):
            raise invalid_parameter("init", f"of shape {part.shape} or {(len(part), 1)}", given.shape)
        part[:, : given.shape[1]] = given


def held_out_for(problem: Any, test: Any) -> Dataset | None:
    """Open the held-out data, and encode it for a problem; return None if there is none."""
    if test is None:
        return None
    opened = problem.open_held_out(test)
    encoded: Dataset = problem.encoded(opened_like(problem.data, test) if opened is None else opened)
    return encoded


def opened_like(data: Dataset, source: Any) -> Dataset:
    """Open held-out data; read a file so that its columns mean the same as those of the training data."""
    if not isinstance(source, (str, os.PathLike)):
        return as_dataset(source, ReadOptions(encoding=data.encoding))
    features = data.all_features
    table = data.table
    reading = ReadOptions(
        base=1 if data.base else 0, features=features, extra="ignore", table=table, encoding=data.encoding
    )
    # A number of columns that is a power of two may come from hashing. The held-out file is then hashed into as many
    # columns.
    if features.bit_count() == 1 and features > 1:
        reading = replace(reading, bits=features.bit_length() - 1)
    return open_data(source, reading=reading)


def resolve_schedule(problem: RowProblem, schedule: Schedule) -> Schedule:
    """Return the schedule with the parameters that depend on the problem filled in."""
    if schedule.base is not None:
        return with_base(schedule, resolve_schedule(problem, schedule.base))
    if not isinstance(schedule, Optimal) or (schedule.alpha and schedule.t0):
        return schedule
    alpha = schedule.alpha or problem.penalty_strength
    first = problem.typical_first_step(alpha or 1.0)
    if first is None:
        raise ParameterError(
            f"The schedule 'optimal' is for linear models. {type(problem).__name__} goes with 'cosine', among others."
        )
    if not alpha:
        raise ParameterError("The schedule 'optimal' is for penalised problems: give l2 (or Optimal(alpha=...)).")
    return Optimal(alpha, schedule.t0 or float(1 / (first * alpha)))


def with_chosen_step(
    problem: Any,
    rule: Any,
    schedule: Schedule,
    budget: Budget,
    seed: int,
    workers: int,
    alone: bool,
    held_out: Dataset | None,
    event_log: EventLog,
) -> Schedule:
    """Return the schedule with a step size; for "auto", choose the step size by trials."""
    if step_of(schedule) != "auto":
        return schedule
    epochs = budget.epochs or TRIED_EPOCHS
    # A trial has one worker, whose steps are those of one row each.
    choice = choose_step(problem, rule, with_total(schedule, 1), epochs, seed, workers, alone, held_out)
    event_log.emit("step chosen", step=choice.step, trials=choice.trials)
    return with_step(schedule, choice.step)


def warn_if_worse(start: float, record: Record, event_log: EventLog, **at: float) -> None:
    """Emit an event if the loss ends above its start: the model is worse than the one before the first update.

    The loss is that of the held-out data, if the record has one.
    """
    held_out = "test_loss" in record
    end = record["test_loss" if held_out else "loss"]
    if end > start:
        what = "held-out loss" if held_out else "loss"
        remedy = "a larger penalty (l2, or 'auto'), or patience" if held_out else "or fewer workers"
        message = f"the {what} rose from {start:.4g} to {end:.4g}: give a smaller step, {remedy}"
        event_log.emit("loss rose", start=start, end=end, message=message, **at)


@dataclass(frozen=True, eq=False)
class Options:
    """Keyword arguments of :func:`~hogwild.training.minimise.minimise`, which documents them."""

    test: Any = None
    average: float | EMA = 0.0
    init: WarmStart | None = None
    shuffle: bool = True
    evaluate_every_epoch: bool = True
    divergence_factor: float = DIVERGENCE_FACTOR
    seed: int = 0
    callbacks: Iterable[Callback] = ()
    checkpoint: str | Path | Checkpoints | bool | None = None
    resume: bool = False
    count_conflicts: bool = False
    folder: str | Path | None = None
    every: int | str | None = None


@dataclass(frozen=True, eq=False)
class Job:
    """Problem, rule, schedule, strategy, runtime and budget of a run, as objects instead of names.

    ``rule`` is a :class:`~hogwild.rules.Rule`, and ``schedule`` a :class:`~hogwild.schedules.Schedule`. A ``Module``
    has an optimiser of PyTorch instead of a rule. Its schedule may be None: the optimiser's own step size is then used.
    """

    problem: Problem
    rule: Any
    schedule: Any
    strategy: Strategy
    runtime: Runtime
    budget: Budget
    options: Options

    @classmethod
    def resolve(
        cls, problem: Problem, rule: Any, schedule: Any, strategy: Strategy | str, runtime: Runtime | str | None,
        budget: Budget | int | None, options: Options,
    ) -> Job:  # fmt: skip
        """Return a job in which names are replaced by objects, and missing parts by defaults that suit the problem."""
        if not isinstance(problem, Problem):
            raise invalid_parameter("problem", "a problem such as Linear((X, y))", type(problem).__name__)
        found = strategies.named(strategy)
        where = runtimes.default_for(problem, found) if runtime is None else runtimes.named(runtime)
        if rule is None and schedule is None and _prefers_duals(problem, found, where, options):
            rule = "sdca"
        rule, schedule = problem.complete(rule, schedule)
        problem = problem.for_rule(rule)
        if isinstance(options.callbacks, Iterator):  # the check and the run both go through them
            options = replace(options, callbacks=tuple(options.callbacks))
        seed: Any = options.seed  # a user may give anything
        if not isinstance(seed, bool) and isinstance(seed, Integral):  # NumPy's would overflow
            options = replace(options, seed=int(seed))
        if is_number(options.average) and not isinstance(options.average, int):
            options = replace(options, average=float(cast(Any, options.average)))
        return cls(problem, rule, schedule, found, where, budget_of(budget).usually(problem.defaults.epochs), options)

    @property
    def workers(self) -> int:
        """The number of workers of the strategy on this machine."""
        return strategies.worker_count(self.strategy)

    @property
    def checkpoints(self) -> Checkpoints | None:
        """The folder of the checkpoints; None if the run has none."""
        given, folder = self.options.checkpoint, self.options.folder
        if folder is not None and (given is True or (given is None and self.options.resume)):
            return Checkpoints(named_path(folder) / CHECKPOINTS)
        if given is None or isinstance(given, Checkpoints):
            return given
        if not isinstance(given, (str, os.PathLike)):
            raise invalid_parameter(
                "checkpoint", "a folder, Checkpoints(folder, seconds), or True with 'folder'", given
            )
        return Checkpoints(named_path(given))


def _prefers_duals(problem: Problem, strategy: Strategy, runtime: Runtime, options: Options) -> bool:
    """Return whether dual coordinate ascent is possible in this run, and the fastest rule for the problem."""
    in_memory = runtime.shares_memory and not runtime.delays_workers and strategy.loses_nothing
    in_memory = in_memory and not runtime.uses_gpu
    asked = options.average or options.init is not None or options.count_conflicts or options.every is not None
    if not isinstance(problem, RowProblem) or not in_memory or asked or problem.searches_penalty:
        return False
    return problem.prefers_duals


# Module with a function ``run(job)``, by the problem's kind of terms and whether the runtime passes messages.
DRIVERS = {
    ("rows", False): "hogwild.training.thread_driver",
    ("rows", True): "hogwild.training.row_message_driver",
    ("batches", False): "hogwild.training.process_driver",
    ("batches", True): "hogwild.training.batch_message_driver",
}


def driver_for(job: Job) -> Callable[[Job], Run]:
    """Return the function that runs a job.

    The driver's module is imported here, because the drivers of batches need PyTorch, which is optional.
    """
    found = importlib.import_module(DRIVERS[job.problem.terms, job.runtime.passes_messages])
    run = cast(Callable[[Job], Run], found.run)
    if job.problem.searches_penalty:
        search = importlib.import_module("hogwild.training.penalty_search")
        run = partial(cast(Callable[[Callable[[Job], Run], Job], Run], search.run), run)
    if job.options.folder is not None:
        run = partial(recorded, run)
    return run if job.checkpoints is None else partial(_alone, run)


def _alone(run: Callable[[Job], Run], job: Job) -> Run:
    """Run a job while no other run writes to the folder of its checkpoints.

    Of the workers that a launcher such as torchrun has started, only rank 0 writes to it.
    """
    if job.problem.terms == "batches" and not job.runtime.passes_messages:
        from hogwild.training.ddp_supervisor import torchrun_rank  # which needs PyTorch

        if (torchrun_rank(job.strategy) or (0, 1))[0] > 0:
            return run(job)
    assert job.checkpoints is not None
    with job.checkpoints.held():
        return run(job)
