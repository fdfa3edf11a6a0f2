"""What a schedule is: how large the step is, over global progress."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hogwild.registry import invalid_parameter

Rates = NDArray[np.float64]
Step = float | Literal["auto"]


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """Where a run is, for a stretch of updates at once: global progress, not one worker's.

    ``updates`` counts terms from 1, ``epochs`` counts walks over the data, ``fraction`` is the share of the budget
    that is spent, 0 to 1.
    """

    updates: Rates
    epochs: Rates
    fraction: Rates


class Schedule(Protocol):
    """How large the step is. Called with a stretch of moments, it returns the step of each."""

    def __call__(self, moment: Moment) -> Rates: ...


S = TypeVar("S")


def positive_step(schedule: Any) -> float:
    """The schedule's own step, which must be known by the time it is called."""
    return float(schedule.step)


def check_step(step: Step) -> None:
    """Refuse a step that is neither a positive number nor "auto"."""
    if step != "auto" and not (isinstance(step, (int, float)) and 0 < step < float("inf")):
        raise invalid_parameter("step", "a positive number or 'auto'", step)


def step_of(schedule: Any) -> Step | None:
    """The step a schedule starts from, its own or its inner one's; None where it needs none.

    >>> from hogwild.schedules import Constant, Warmup
    >>> step_of(Warmup(Constant(0.5)))
    0.5
    """
    if hasattr(schedule, "step"):
        return schedule.step  # type: ignore[no-any-return]
    return step_of(schedule.then) if hasattr(schedule, "then") else None


def with_step(schedule: S, step: Step) -> S:
    """The same schedule from another step.

    >>> from hogwild.schedules import Cosine
    >>> with_step(Cosine(), 0.25)
    Cosine(step=0.25, floor=0.0)
    """
    if hasattr(schedule, "step"):
        return dataclasses.replace(schedule, step=step)  # type: ignore[type-var]
    if hasattr(schedule, "then"):
        return dataclasses.replace(schedule, then=with_step(schedule.then, step))  # type: ignore[type-var]
    return schedule
