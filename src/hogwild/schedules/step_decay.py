"""Step size that falls at given fractions of the budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hogwild.registry import invalid_parameter
from hogwild.schedules.schedule import Moment, Rates, Schedule, Step, check_step, positive_step


@dataclass(frozen=True, slots=True)
class Steps(Schedule):
    """Step decay: the step size is multiplied by ``factor`` at each of the fractions ``at`` of the budget.

    Parameters
    ----------
    step : float or "auto", default "auto"
        Initial step size; "auto" chooses it by short trial runs on a sample.
    at : tuple of float, default (0.5, 0.75)
        Fractions of the budget, between 0 and 1.
    factor : float, default 0.1
        Positive factor of the step size at each fraction.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.
    """

    step: Step = "auto"
    at: tuple[float, ...] = (0.5, 0.75)
    factor: float = 0.1

    def __post_init__(self) -> None:
        check_step(self.step)
        if not all(0 < fraction < 1 for fraction in self.at):
            raise invalid_parameter("at", "fractions between 0 and 1", self.at)
        if not self.factor > 0:
            raise invalid_parameter("factor", "a positive number", self.factor)

    def __call__(self, moment: Moment) -> Rates:
        passed = np.searchsorted(np.sort(self.at), moment.fraction, side="right")
        rates: Rates = positive_step(self) * self.factor ** passed.astype(float)
        return rates
