"""Constant step size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hogwild.schedules.schedule import Moment, Rates, Schedule, Step, check_step, positive_step


@dataclass(frozen=True, slots=True)
class Constant(Schedule):
    """Constant step size.

    Parameters
    ----------
    step : float or "auto", default "auto"
        Step size; "auto" chooses it by short trial runs on a sample.

    Raises
    ------
    ParameterError
        If ``step`` is neither a positive number nor "auto".
    """

    step: Step = "auto"

    is_constant = True

    def __post_init__(self) -> None:
        check_step(self.step)

    def __call__(self, moment: Moment) -> Rates:
        return np.full(moment.updates.shape, positive_step(self))
