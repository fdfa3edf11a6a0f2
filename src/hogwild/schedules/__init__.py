"""Schedules of the step size, by class and by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from hogwild.errors import ParameterError
from hogwild.registry import invalid_parameter, is_own, kebab, lookup, not_an_object
from hogwild.schedules.decay import Adaptive, Backoff, Constant, Cooldown, Cosine, Steps
from hogwild.schedules.inverse import InverseScaling, InverseTime, Optimal
from hogwild.schedules.schedule import (
    FunctionSchedule,
    Moment,
    Rates,
    Schedule,
    Step,
    check_own_schedule,
    step_of,
    with_base,
    with_step,
)
from hogwild.schedules.warmup import LinearScaling, Warmup, scales, warmup_epochs, with_total

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
        Cooldown,
        Adaptive,
        Warmup,
        LinearScaling,
    )
}


def named(schedule: str | float | Schedule | Callable[[Moment], Rates]) -> Schedule:
    """Return a schedule, given as an object, by its name, or as a constant step size.

    Numbers after the name are the schedule's own, in the order of ``Schedule.numbers``. A schedule that modifies
    another ends with the name of that one: ``"warmup:5:0.1:cosine"`` is a warm-up of 5 epochs from a tenth of the step,
    before and within a cosine.

    Raises
    ------
    ParameterError
        If there is no such schedule, or if it does not have these numbers.

    Examples
    --------
    >>> named("backoff")
    Backoff(step='auto', beta=0.9, epochs=1.0)
    >>> named("warmup:5:cosine")
    Warmup(base=Cosine(step='auto', floor=0.0), epochs=5, start=0.1)
    """
    if isinstance(schedule, Schedule):
        return check_own_schedule(schedule) if is_own(schedule) else schedule
    if isinstance(schedule, int | float) and not isinstance(schedule, bool):
        return Constant(schedule)
    if callable(schedule) and not isinstance(schedule, type):
        return check_own_schedule(FunctionSchedule(schedule))
    if not isinstance(schedule, str):
        raise not_an_object(
            "schedule", "a schedule such as Cosine(0.1), its name, a step or a function", schedule, Schedule
        )
    name, *parts = schedule.split(":")
    kind = lookup("schedule", name, SCHEDULES)
    arguments = _arguments(kind, schedule, parts)
    try:
        return kind(**arguments)
    except ParameterError as error:  # names the number of the schedule that is wrong
        raise ParameterError(f"The 'schedule' parameter cannot be {schedule!r}: {error}") from None


def starting_at(
    step: Step | None, schedule: Schedule | str | float | None, usual: str
) -> Schedule | str | float | None:
    """Return the schedule argument of ``minimise`` for a step size given beside it; ``usual`` stands for None.

    >>> starting_at(0.5, None, "cosine"), starting_at(None, None, "cosine")
    (Cosine(step=0.5, floor=0.0), None)
    """
    return schedule if step is None else with_step(named(usual if schedule is None else schedule), step)


def _arguments(kind: type[Schedule], text: str, parts: list[str]) -> dict[str, Any]:
    """Return the constructor arguments in the parts after a schedule's name: its numbers, then its base.

    >>> _arguments(Warmup, "warmup:5", ["5"])
    {'epochs': 5}
    """
    arguments: dict[str, Any] = {}
    for field in kind.numbers:
        number = _number(parts[0]) if parts else None
        if number is None:
            break
        arguments[field], parts = number, parts[1:]
    if parts and _has_base(kind) and parts[0].strip() and _number(parts[0]) is None:
        return {**arguments, "base": named(":".join(parts))}
    if parts:
        raise invalid_parameter("schedule", _grammar(kind), text)
    return arguments


def _has_base(kind: type[Schedule]) -> bool:
    # Every schedule in ``SCHEDULES`` is a dataclass, which the base class cannot declare.
    return "base" in {field.name for field in fields(kind)}  # type: ignore[arg-type]


def _number(text: str) -> float | None:
    """Return the number that a text stands for; None if it is no number."""
    try:
        return int(text) if text.strip().isdecimal() else float(text)
    except ValueError:
        return None


def _grammar(kind: type[Schedule]) -> str:
    """Return what may follow the name of a schedule, for a message.

    >>> _grammar(Warmup), _grammar(Optimal)
    ("'warmup[:EPOCHS][:START][:SCHEDULE]'", "'optimal' alone")
    """
    name = kebab(kind.__name__)
    parts = "".join(f"[:{field.upper()}]" for field in kind.numbers)
    parts += "[:SCHEDULE]" if _has_base(kind) else ""
    return f"'{name}{parts}'" if parts else f"'{name}' alone"


__all__ = [
    "SCHEDULES",
    "Adaptive",
    "Backoff",
    "Constant",
    "Cooldown",
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
    "warmup_epochs",
    "with_base",
    "with_step",
    "with_total",
]
