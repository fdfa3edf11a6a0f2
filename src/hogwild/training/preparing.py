"""What a run is made ready with: where it begins, its held-out data, and its step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.data import open as open_data
from hogwild.data import opened
from hogwild.data.dataset import Dataset
from hogwild.data.reading import Reading
from hogwild.errors import ParameterError
from hogwild.naming import must
from hogwild.run import Budget, Start
from hogwild.schedules import Optimal, Schedule, step_of, with_step
from hogwild.training.autostep import choose_step
from hogwild.training.journal import Journal

TRIED_EPOCHS = 10  # what a trial of the step assumes where only time is limited


def put(start: Start, state: Any) -> None:
    """Let a run begin where another ended; what only its values are given of has a fresh memory."""
    for part, given in zip(state, start.state, strict=True):
        given = np.asarray(given, part.dtype)
        if given.shape not in (part.shape, (len(part), 1)):
            raise must("start", f"of shape {part.shape} or {(len(part), 1)}", given.shape)
        part[:, : given.shape[1]] = given


def opened_like(data: Dataset, source: Any) -> Dataset:
    """Open held-out data; files are read so that their columns mean the same as those of the training data."""
    if not isinstance(source, (str, Path)):
        return opened(source)
    features = data.n_features
    reading = Reading(base=1 if data.base else 0, features=features, extra="ignore")
    if features.bit_count() == 1 and features > 1:  # perhaps hashed, and then into as many columns
        reading = replace(reading, bits=features.bit_length() - 1)
    return open_data(source, reading=reading)


def resolved(problem: Any, schedule: Schedule) -> Schedule:
    """Fill in what a schedule takes from the problem."""
    if hasattr(schedule, "then"):
        return replace(schedule, then=resolved(problem, schedule.then))  # type: ignore[type-var]
    if not isinstance(schedule, Optimal) or (schedule.alpha and schedule.start):
        return schedule
    alpha = schedule.alpha or problem.l2 or problem.l1
    if not alpha:
        raise ParameterError("The schedule 'optimal' is for penalised problems: give l2 (or Optimal(alpha=...)).")
    typical = np.sqrt(1 / np.sqrt(alpha))
    first = typical / max(1.0, abs(problem.loss(-typical, 1.0)[1]))
    return Optimal(alpha, schedule.start or float(1 / (first * alpha)))


def with_chosen_step(
    problem: Any, rule: Any, schedule: Schedule, budget: Budget, seed: int, workers: int, alone: bool, journal: Journal
) -> Schedule:
    """The schedule with a step, found by trials if none is given."""
    if step_of(schedule) != "auto":
        return schedule
    epochs = budget.epochs or TRIED_EPOCHS
    choice = choose_step(problem, rule, schedule, epochs, seed, workers, alone)
    journal.tell("step chosen", step=choice.step, trials=choice.trials)
    return with_step(schedule, choice.step)
