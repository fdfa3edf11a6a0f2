"""Preparation of a run: initial state, held-out data, and step size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.data import as_dataset
from hogwild.data import open as open_data
from hogwild.data.dataset import Dataset
from hogwild.data.reader import ReadOptions
from hogwild.errors import ParameterError
from hogwild.problems.problem import RowProblem
from hogwild.registry import invalid_parameter
from hogwild.run import Budget, WarmStart
from hogwild.schedules import Optimal, Schedule, step_of, with_base, with_step
from hogwild.training.event_log import EventLog
from hogwild.training.step_search import choose_step

TRIED_EPOCHS = 10  # number of epochs that trials of the step size assume if the budget limits only seconds


def load_initial_state(init: WarmStart, state: Any) -> None:
    """Copy a warm start into the state of a run.

    A warm start that has values alone leaves the other columns of the state as the rule initialises them.
    """
    for part, given in zip(state, init.state, strict=True):
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
    if not isinstance(source, (str, Path)):
        return as_dataset(source)
    features = data.n_features
    table = data.table
    reading = ReadOptions(base=1 if data.base else 0, features=features, extra="ignore", table=table)
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
    event_log: EventLog,
) -> Schedule:
    """Return the schedule with a step size; for "auto", choose the step size by trials."""
    if step_of(schedule) != "auto":
        return schedule
    epochs = budget.epochs or TRIED_EPOCHS
    choice = choose_step(problem, rule, schedule, epochs, seed, workers, alone)
    event_log.emit("step chosen", step=choice.step, trials=choice.trials)
    return with_step(schedule, choice.step)
