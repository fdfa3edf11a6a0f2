"""A step that falls at chosen moments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hogwild.registry import invalid_parameter
from hogwild.schedules.schedule import Moment, Rates, Schedule, Step, check_step, positive_step


@dataclass(frozen=True, slots=True)
class Steps(Schedule):
    """Multiply the step by ``factor`` each time the run passes one of the fractions ``at`` of its budget."""

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
