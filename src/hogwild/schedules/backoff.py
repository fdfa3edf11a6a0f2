"""Backoff schedule of the Hogwild! paper (Niu et al. 2011): ever smaller step sizes for ever longer stretches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hogwild.registry import invalid_parameter
from hogwild.schedules.schedule import Moment, Rates, Schedule, Step, check_step, positive_step


@dataclass(frozen=True, slots=True)
class Backoff(Schedule):
    """Backoff: a stretch of ``epochs`` epochs at ``step``, then ``epochs / beta`` at ``beta * step``, and so on.

    The convergence rate is 1/k (Niu et al. 2011, section 5). The paper's experiments use beta 0.9; about 0.37 is best
    in theory.

    Parameters
    ----------
    step : float or "auto", default "auto"
        Step size of the first stretch; "auto" chooses it by short trial runs on a sample.
    beta : float, default 0.9
        Factor of the step size from one stretch to the next, between 0 and 1.
    epochs : float, default 1.0
        Length of the first stretch in epochs.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    F. Niu, B. Recht, C. Ré and S. J. Wright, "HOGWILD!: A Lock-Free Approach to Parallelizing Stochastic Gradient
    Descent", NIPS 2011.
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
        # The first k stretches last epochs * (r^k - 1) / (r - 1) in total, with r = 1 / beta. Solve this for k.
        ratio = 1 / self.beta
        done = np.log1p(moment.epochs / self.epochs * (ratio - 1)) / np.log(ratio)
        rates: Rates = positive_step(self) * self.beta ** np.floor(done + 1e-9)
        return rates
