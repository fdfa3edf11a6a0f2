"""Cosine schedule: the step size falls to a floor at the end of the budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hogwild.registry import invalid_parameter
from hogwild.schedules.schedule import Moment, Rates, Schedule, Step, check_step, positive_step


@dataclass(frozen=True, slots=True)
class Cosine(Schedule):
    """Cosine schedule: from ``step`` to ``floor * step`` along half a cosine, over the budget of the run.

    Parameters
    ----------
    step : float or "auto", default "auto"
        Initial step size; "auto" chooses it by short trial runs on a sample.
    floor : float, default 0.0
        Final step size as a fraction of the initial one, between 0 and 1.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.
    """

    step: Step = "auto"
    floor: float = 0.0

    def __post_init__(self) -> None:
        check_step(self.step)
        if not 0 <= self.floor <= 1:
            raise invalid_parameter("floor", "between 0 and 1", self.floor)

    def __call__(self, moment: Moment) -> Rates:
        rates: Rates = np.clip(moment.fraction, 0, 1)
        rates *= np.pi
        np.cos(rates, out=rates)
        rates *= 0.5
        rates += 0.5
        if self.floor:
            rates *= 1 - self.floor
            rates += self.floor
        rates *= positive_step(self)
        return rates
