"""Step sizes that fall as a power of time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hogwild.jit import compiled
from hogwild.registry import invalid_parameter, is_number
from hogwild.schedules.schedule import Moment, Rates, Schedule, Step, check_step, positive_step


@dataclass(frozen=True, slots=True)
class InverseTime(Schedule):
    """Inverse-time schedule: the step size is ``step / (1 + decay * epochs)``.

    Parameters
    ----------
    step : float or "auto", default "auto"
        Initial step size; "auto" chooses it by short trial runs on a sample.
    decay : float, default 1.0
        Decay per epoch, at least 0.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.
    """

    step: Step = "auto"
    decay: float = 1.0

    numbers = ("decay",)

    def __post_init__(self) -> None:
        check_step(self.step)
        if not is_number(self.decay) or not self.decay >= 0:
            raise invalid_parameter("decay", "a number of at least 0", self.decay)

    def __call__(self, moment: Moment) -> Rates:
        rates = self.decay * moment.epochs
        rates += 1
        return np.divide(positive_step(self), rates, out=rates)


@compiled
def _powers(numbers: Rates, power: float) -> Rates:
    """Return powers from the C library as in scikit-learn, because NumPy's own differ in the last digit."""
    found = np.empty(numbers.size)
    for k in range(numbers.size):
        found[k] = math.pow(numbers[k], power)
    return found


@dataclass(frozen=True, slots=True)
class InverseScaling(Schedule):
    """Inverse-scaling schedule: the step size is ``step / updates ** power``, scikit-learn's ``invscaling``.

    Parameters
    ----------
    step : float or "auto", default "auto"
        Step size of the first update; "auto" chooses it by short trial runs on a sample.
    power : float, default 0.25
        Exponent, at least 0.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.
    """

    step: Step = "auto"
    power: float = 0.25

    numbers = ("power",)

    def __post_init__(self) -> None:
        check_step(self.step)
        if not is_number(self.power) or not self.power >= 0:
            raise invalid_parameter("power", "a number of at least 0", self.power)

    def __call__(self, moment: Moment) -> Rates:
        rates: Rates = positive_step(self) / _powers(moment.updates, float(self.power))
        return rates


@dataclass(frozen=True, slots=True)
class Optimal(Schedule):
    """Bottou's schedule: the step size is ``1 / (alpha * (t0 + updates - 1))``, as in scikit-learn.

    Parameters
    ----------
    alpha : float, optional
        Strength of the penalty; by default that of the problem.
    t0 : float, optional
        Offset of the number of updates. By default the first step size has the magnitude of the expected weights.

    Raises
    ------
    ParameterError
        If a parameter is not positive.
    """

    alpha: float | None = None
    t0: float | None = None

    def __post_init__(self) -> None:
        for name in ("alpha", "t0"):
            value = getattr(self, name)
            if value is not None and (not is_number(value) or not value > 0):
                raise invalid_parameter(name, "a positive number", value)

    def __call__(self, moment: Moment) -> Rates:
        assert self.alpha is not None
        assert self.t0 is not None
        return 1 / (self.alpha * (self.t0 + moment.updates - 1))
