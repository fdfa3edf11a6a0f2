"""Step size that falls when the objective stalls."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hogwild.registry import invalid_parameter
from hogwild.schedules.schedule import Moment, Rates, Schedule, Step, check_step, positive_step


@dataclass(frozen=True, slots=True)
class Adaptive(Schedule):
    """Adaptive schedule: a constant step size while the objective falls, then ``step / factor``, down to ``least``.

    The schedule needs a budget with a ``tolerance``, which defines a stall. scikit-learn calls this schedule
    ``adaptive``.

    Parameters
    ----------
    step : float or "auto", default "auto"
        Initial step size; "auto" chooses it by short trial runs on a sample.
    factor : float, default 5.0
        Divisor of the step size after a stall, above 1.
    least : float, default 1e-6
        Step size at or below which a stall ends the run.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> Adaptive(step=0.1).after_stall()
    Adaptive(step=0.02, factor=5.0, least=1e-06)
    """

    step: Step = "auto"
    factor: float = 5.0
    least: float = 1e-6

    needs_stall = True

    def __post_init__(self) -> None:
        check_step(self.step)
        if not self.factor > 1:
            raise invalid_parameter("factor", "a number above 1", self.factor)

    def __call__(self, moment: Moment) -> Rates:
        return np.full(moment.updates.shape, positive_step(self))

    def after_stall(self) -> Adaptive | None:
        """Return the schedule that follows a stall of the objective; None ends the run."""
        return replace(self, step=positive_step(self) / self.factor) if positive_step(self) > self.least else None
