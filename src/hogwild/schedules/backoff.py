"""The step of the Hogwild! paper: shorter and shorter steps for longer and longer stretches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hogwild.registry import invalid_parameter
from hogwild.schedules.schedule import Moment, Rates, Schedule, Step, check_step, positive_step


@dataclass(frozen=True, slots=True)
class Backoff(Schedule):
    """A stretch of ``epochs`` at ``step``, then ``epochs / beta`` at ``beta * step``, and so on.

    Gives a 1/k rate (Niu et al. 2011, section 5). The paper's experiments use beta 0.9; about 0.37 is best in theory.
    """

    step: Step = "auto"
    beta: float = 0.9
    epochs: float = 1.0

    def __post_init__(self) -> None:
        check_step(self.step)
        if not 0 < self.beta < 1:
            raise invalid_parameter("beta", "between 0 and 1", self.beta)
        if not self.epochs > 0:
            raise invalid_parameter("epochs", "a positive number", self.epochs)

    def __call__(self, moment: Moment) -> Rates:
        # The first k stretches last epochs * (r^k - 1) / (r - 1) in all, with r = 1 / beta: solve for k.
        ratio = 1 / self.beta
        done = np.log1p(moment.epochs / self.epochs * (ratio - 1)) / np.log(ratio)
        rates: Rates = positive_step(self) * self.beta ** np.floor(done + 1e-9)
        return rates
