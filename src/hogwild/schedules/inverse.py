"""Steps that fall as a power of time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from hogwild.jit import compiled
from hogwild.registry import invalid_parameter
from hogwild.schedules.schedule import Moment, Rates, Schedule, Step, check_step, positive_step


@dataclass(frozen=True, slots=True)
class InverseTime(Schedule):
    """``step / (1 + decay * epochs)``."""

    step: Step = "auto"
    decay: float = 1.0

    def __post_init__(self) -> None:
        check_step(self.step)
        if not self.decay >= 0:
            raise invalid_parameter("decay", "a number of at least 0", self.decay)

    def __call__(self, moment: Moment) -> Rates:
        rates = self.decay * moment.epochs
        rates += 1
        return np.divide(positive_step(self), rates, out=rates)


@compiled
def _powers(numbers: Any, power: Any) -> Any:
    """Powers by the C library, as scikit-learn has them: NumPy's own differ in the last digit."""
    found = np.empty(numbers.size)
    for k in range(numbers.size):
        found[k] = math.pow(numbers[k], power)
    return found


@dataclass(frozen=True, slots=True)
class InverseScaling(Schedule):
    """``step / updates ** power``, scikit-learn's ``invscaling``."""

    step: Step = "auto"
    power: float = 0.25

    def __post_init__(self) -> None:
        check_step(self.step)
        if not self.power >= 0:
            raise invalid_parameter("power", "a number of at least 0", self.power)

    def __call__(self, moment: Moment) -> Rates:
        rates: Rates = positive_step(self) / _powers(moment.updates, float(self.power))
        return rates


@dataclass(frozen=True, slots=True)
class Optimal(Schedule):
    """``1 / (alpha * (t0 + updates - 1))``, Bottou's, as in scikit-learn.

    ``alpha`` is the strength of the penalty and ``t0`` is chosen so that the first step is of the size of the
    weights to be expected; None takes both from the problem.
    """

    alpha: float | None = None
    t0: float | None = None

    def __post_init__(self) -> None:
        for name in ("alpha", "t0"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise invalid_parameter(name, "a positive number", value)

    def __call__(self, moment: Moment) -> Rates:
        assert self.alpha is not None
        assert self.t0 is not None
        return 1 / (self.alpha * (self.t0 + moment.updates - 1))
