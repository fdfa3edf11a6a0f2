"""Interface of schedules: the step size as a function of global progress."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from hogwild.errors import ParameterError
from hogwild.registry import check_arguments, invalid_parameter, is_own

Rates = NDArray[np.float64]
Step = float | Literal["auto"]
SIGNATURE = "(moment) -> steps"  # of a schedule of the user's
MOMENTS = 128  # at which the largest step size of a schedule is looked for


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """Global progress of a run, not that of one worker, for a stretch of updates at once.

    ``updates`` counts terms from 1. ``epochs`` counts passes over the data. ``fraction`` is the spent share of the
    budget, 0 to 1.
    """

    updates: Rates
    epochs: Rates
    fraction: Rates


class Schedule(ABC):
    """Schedule of the step size over the run: a callable that returns the step size of each update of a stretch.

    A schedule derives from this class and defines ``__call__``; all other members have defaults. Schedules are frozen
    data classes. ``step`` and ``base`` are fields of those schedules that have them.
    """

    __slots__ = ()

    # Fields whose values may follow the name of the schedule, in this order and separated by colons: "cosine:0.1".
    numbers: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def __call__(self, moment: Moment) -> Rates:
        """Return the step sizes of a stretch of updates."""

    @property
    def step(self) -> Step | None:
        """The initial step size, or "auto"; None for a schedule without one."""
        return None

    @property
    def base(self) -> Schedule | None:
        """The schedule that this one modifies; None if there is none."""
        return None

    @property
    def is_constant(self) -> bool:
        """Whether all step sizes are equal, so that the caller can compute one for many updates."""
        return False

    @property
    def is_proportional(self) -> bool:
        """Whether all step sizes are multiples of ``step``, so that a caller can compute them once for several."""
        return False

    @property
    def needs_stall(self) -> bool:
        """Whether the schedule reacts to a stall of the objective, which requires a budget with a tolerance."""
        return False

    @property
    def scales_with_batch(self) -> bool:
        """Whether the schedule depends on the number of samples per step."""
        return False

    def after_stall(self) -> Schedule | None:
        """Return the schedule that follows a stall of the objective; None ends the run."""
        return None


S = TypeVar("S", bound=Schedule)
Floats = TypeVar("Floats", bound=NDArray[np.floating[Any]])


@dataclass(frozen=True, slots=True)
class FunctionSchedule(Schedule):
    """Schedule of a user's function, which maps a :class:`Moment` to the steps of its updates."""

    function: Callable[[Moment], Rates]

    def __call__(self, moment: Moment) -> Rates:
        """Return the steps that the function gives, as an array with one step per update."""
        return np.broadcast_to(np.asarray(self.function(moment), np.float64), moment.updates.shape).copy()


def check_own_schedule(schedule: S) -> S:
    """Return a schedule of the user's after a trial with a stretch of two updates.

    Raises
    ------
    ParameterError
        If it fails, or does not return a step for each update, or one for all.

    Examples
    --------
    >>> check_own_schedule(FunctionSchedule(lambda moment: "0.1"))
    Traceback (most recent call last):
    hogwild.errors.ParameterError: The schedule <lambda> must be a function (moment) -> steps, ... Got '0.1'.
    """
    if step_of(schedule) == "auto":
        return schedule  # It has no step yet.
    name = _own_name(schedule)
    said = f"The schedule {name} must be a function {SIGNATURE}"
    if isinstance(schedule, FunctionSchedule):
        check_arguments("schedule", schedule.function, 1, SIGNATURE)
    moment = Moment(np.array([1.0, 2.0]), np.array([0.0, 0.5]), np.array([0.0, 0.25]))
    try:
        found: object = schedule.function(moment) if isinstance(schedule, FunctionSchedule) else schedule(moment)
    except Exception as error:
        raise ParameterError(
            f"{said}, where moment.updates, moment.epochs and moment.fraction are arrays with a number for each update "
            f"of a stretch. It fails: {type(error).__name__}: {error}"
        ) from error
    steps = np.asarray(found)
    if steps.dtype.kind not in "iuf" or steps.shape not in ((), (2,)):
        raise ParameterError(f"{said}, a positive number for each update of a stretch, or one for all. Got {found!r}.")
    if not (np.isfinite(steps) & (steps >= 0)).all():
        raise ParameterError(f"{said} that are not negative. For the epochs 0 and 0.5 it gives {found!r}.")
    return schedule


def check_steps(schedule: Schedule, steps: Floats) -> Floats:
    """Return the steps that a schedule has given for a stretch of a run.

    Raises
    ------
    ParameterError
        If a schedule of the user's, or a modification of one, gives a step that is negative or not finite.

    Examples
    --------
    >>> check_steps(FunctionSchedule(min), np.array([0.1, -1.0]))
    Traceback (most recent call last):
    hogwild.errors.ParameterError: The schedule min must give steps that are finite and not negative. ... it gives -1.
    """
    name = _own_name(schedule)
    if name is None or not steps.size:
        return steps
    low, high = float(steps.min()), float(steps.max())
    if not (low >= 0 and high < np.inf):  # not a number, if there is one
        raise ParameterError(
            f"The schedule {name} must give steps that are finite and not negative. During the run it gives "
            f"{high if low >= 0 else low:g}."
        )
    return steps


def _own_name(schedule: Schedule) -> str | None:
    """Return the name of a schedule of the user's, or of one that this one modifies; None if all are of this package.

    >>> _own_name(FunctionSchedule(min))
    'min'
    """
    if isinstance(schedule, FunctionSchedule):
        return str(getattr(schedule.function, "__name__", type(schedule.function).__name__))
    if is_own(schedule):
        return type(schedule).__name__
    return None if schedule.base is None else _own_name(schedule.base)


def positive_step(schedule: Schedule) -> float:
    """Return the schedule's own step size, which must no longer be "auto"."""
    assert isinstance(schedule.step, int | float)
    return float(schedule.step)


def check_step(step: Step) -> None:
    """Raise a ParameterError if a step size is neither a positive number nor "auto"."""
    if step != "auto" and not (isinstance(step, (int, float)) and 0 < step < float("inf")):
        raise invalid_parameter("step", "a positive number or 'auto'", step)


def step_of(schedule: Schedule) -> Step | None:
    """Return the initial step size of a schedule or of its base; None for a schedule without one.

    >>> from hogwild.schedules import Constant, Warmup
    >>> step_of(Warmup(Constant(0.5)))
    0.5
    """
    return schedule.step if schedule.base is None else step_of(schedule.base)


def largest_step(schedule: Schedule, rows: int, epochs: float) -> float | None:
    """Return the largest step size of a run; None for a schedule without an initial one, or with one that is no number.

    >>> from hogwild.schedules import Cosine, LinearScaling, with_total
    >>> scaled = with_total(LinearScaling(Cosine(0.5), reference=8, warmup=1), 32)
    >>> largest_step(Cosine(0.5), rows=100, epochs=4), largest_step(scaled, rows=100, epochs=4)
    (0.5, 1.7071067811865475)
    """
    if not isinstance(step_of(schedule), int | float):
        return None
    fraction = np.linspace(0, 1, MOMENTS, endpoint=False)
    found = float(np.max(schedule(Moment(1 + rows * epochs * fraction, epochs * fraction, fraction))))
    return found if np.isfinite(found) else None


def with_step(schedule: S, step: Step) -> S:
    """Return the schedule with another initial step size.

    >>> from hogwild.schedules import Cosine
    >>> with_step(Cosine(), 0.25)
    Cosine(step=0.25, floor=0.0)
    """
    if schedule.base is not None:
        return with_base(schedule, with_step(schedule.base, step))
    # Every schedule with a step or a base is a dataclass, which the base class cannot declare.
    return schedule if schedule.step is None else dataclasses.replace(schedule, step=step)  # type: ignore[type-var]


def with_base(schedule: S, base: Schedule) -> S:
    """Return the schedule as a modification of another base."""
    return dataclasses.replace(schedule, base=base)  # type: ignore[type-var]
