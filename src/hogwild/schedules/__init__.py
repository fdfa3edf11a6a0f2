"""Schedules of the step size, by class and by name."""

from __future__ import annotations

from collections.abc import Callable

from hogwild.registry import invalid_parameter, kebab, lookup
from hogwild.schedules.decay import Adaptive, Backoff, Constant, Cosine, Steps
from hogwild.schedules.inverse import InverseScaling, InverseTime, Optimal
from hogwild.schedules.schedule import FunctionSchedule, Moment, Rates, Schedule, step_of, with_base, with_step
from hogwild.schedules.warmup import LinearScaling, Warmup, scales, with_total

SCHEDULES: dict[str, type[Schedule]] = {
    kebab(schedule.__name__): schedule
    for schedule in (
        Constant,
        InverseTime,
        InverseScaling,
        Optimal,
        Backoff,
        Steps,
        Cosine,
        Adaptive,
        Warmup,
        LinearScaling,
    )
}


def named(schedule: str | float | Schedule | Callable[[Moment], Rates]) -> Schedule:
    """Return a schedule, given as an object, by its name, or as a constant step size.

    Raises
    ------
    ParameterError
        If there is no such schedule.

    Examples
    --------
    >>> named("backoff")
    Backoff(step='auto', beta=0.9, epochs=1.0)
    """
    if isinstance(schedule, Schedule):
        return schedule
    if isinstance(schedule, int | float) and not isinstance(schedule, bool):
        return Constant(schedule)
    if callable(schedule) and not isinstance(schedule, type):
        return FunctionSchedule(schedule)
    if not isinstance(schedule, str):
        raise invalid_parameter("schedule", "a schedule such as Cosine(0.1), its name, a step or a function", schedule)
    return lookup("schedule", schedule, SCHEDULES)()


__all__ = [
    "SCHEDULES",
    "Adaptive",
    "Backoff",
    "Constant",
    "Cosine",
    "InverseScaling",
    "InverseTime",
    "LinearScaling",
    "Moment",
    "Optimal",
    "Schedule",
    "Steps",
    "Warmup",
    "named",
    "scales",
    "step_of",
    "with_base",
    "with_step",
    "with_total",
]
