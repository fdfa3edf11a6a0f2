"""What a schedule is: how large the step is, over global progress."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, TypeVar

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


class Schedule(ABC):
    """The step size over the run. Called with a stretch of moments, a schedule returns the step of each.

    A schedule derives from this class and says how it is called; all else has a default. Schedules are frozen data
    classes: ``step`` and ``base`` are fields of those that have them.
    """

    __slots__ = ()

    @abstractmethod
    def __call__(self, moment: Moment) -> Rates:
        """The steps of a stretch of updates."""

    @property
    def step(self) -> Step | None:
        """The step it starts from, or "auto"; None where it takes none."""
        return None

    @property
    def base(self) -> Schedule | None:
        """The schedule that it modifies; None for a schedule that stands by itself."""
        return None

    @property
    def is_constant(self) -> bool:
        """Whether every step is the same, so that one stands for many."""
        return False

    @property
    def needs_stall(self) -> bool:
        """Whether it waits for the objective to stall, which takes a budget with a tolerance."""
        return False

    @property
    def scales_with_batch(self) -> bool:
        """Whether it depends on the number of samples in a step."""
        return False

    def after_stall(self) -> Schedule | None:
        """The schedule to go on with when the objective has stalled; None: it is time to stop."""
        return None


S = TypeVar("S", bound=Schedule)


def positive_step(schedule: Schedule) -> float:
    """The schedule's own step, which must be known by the time it is called."""
    assert isinstance(schedule.step, int | float)
    return float(schedule.step)


def check_step(step: Step) -> None:
    """Refuse a step that is neither a positive number nor "auto"."""
    if step != "auto" and not (isinstance(step, (int, float)) and 0 < step < float("inf")):
        raise invalid_parameter("step", "a positive number or 'auto'", step)


def step_of(schedule: Schedule) -> Step | None:
    """The step a schedule starts from, its own or its inner one's; None where it needs none.

    >>> from hogwild.schedules import Constant, Warmup
    >>> step_of(Warmup(Constant(0.5)))
    0.5
    """
    return schedule.step if schedule.base is None else step_of(schedule.base)


def with_step(schedule: S, step: Step) -> S:
    """The same schedule from another step.

    >>> from hogwild.schedules import Cosine
    >>> with_step(Cosine(), 0.25)
    Cosine(step=0.25, floor=0.0)
    """
    if schedule.base is not None:
        return with_base(schedule, with_step(schedule.base, step))
    return schedule if schedule.step is None else dataclasses.replace(schedule, step=step)  # type: ignore[type-var]


def with_base(schedule: S, base: Schedule) -> S:
    """The same modification of another schedule."""
    return dataclasses.replace(schedule, base=base)  # type: ignore[type-var]
