"""Schedules: one file (or one class) and one line here each."""

from __future__ import annotations

from hogwild.registry import kebab, lookup
from hogwild.schedules.backoff import Backoff
from hogwild.schedules.constant import Constant
from hogwild.schedules.cosine import Cosine
from hogwild.schedules.inverse import InverseScaling, InverseTime, Optimal
from hogwild.schedules.linear_scaling import LinearScaling, scales, with_total
from hogwild.schedules.reduce_on_plateau import Adaptive
from hogwild.schedules.schedule import Moment, Schedule, step_of, with_step
from hogwild.schedules.step_decay import Steps
from hogwild.schedules.warmup import Warmup

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


def named(schedule: str | Schedule) -> Schedule:
    """A schedule from its name, or from itself.

    >>> named("backoff")
    Backoff(step='auto', beta=0.9, epochs=1.0)
    """
    return lookup("schedule", schedule, SCHEDULES)() if isinstance(schedule, str) else schedule


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
    "with_step",
    "with_total",
]
