"""Options of the step size: a schedule and its initial step size, or the defaults of the problem."""

from __future__ import annotations

from typing import Any

from hogwild.errors import ParameterError


def check_step(schedule: str | None, step: str | None) -> None:
    """Raise an error for an invalid schedule or step size, before any data is read."""
    from hogwild.schedules import named, step_of

    number = _number(step)
    if schedule is not None and step_of(named(schedule)) is None and number is not None and number != "auto":
        raise ParameterError(f"The schedule {schedule!r} finds its own steps. Leave out --step, or choose another one.")


def schedule_for(problem: Any, schedule: str | None, step: str | None) -> Any:
    """Return the schedule argument of ``minimise``; None stands for the default of the problem.

    >>> schedule_for(None, None, None), schedule_for(None, "constant", "0.5"), schedule_for(None, None, "2")
    (None, Constant(step=0.5), Cosine(step=2.0, floor=0.0))
    """
    from hogwild.problems.problem import Defaults, Problem
    from hogwild.schedules import named, with_step

    if step is None:
        return schedule
    usual = problem.defaults if isinstance(problem, Problem) else Defaults()
    return with_step(named(schedule or usual.schedule), _number(step))


def _number(step: str | None) -> Any:
    if step is None or step == "auto":
        return step
    try:
        return float(step)
    except ValueError:
        raise ParameterError(
            f"The 'step' parameter must be a positive number or 'auto'. Got {step!r} instead."
        ) from None
