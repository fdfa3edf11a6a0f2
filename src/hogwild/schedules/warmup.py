"""Warmup: a linear rise of the step size at the start of any schedule."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hogwild.registry import invalid_parameter
from hogwild.schedules.constant import Constant
from hogwild.schedules.schedule import Moment, Rates, Schedule


@dataclass(frozen=True, slots=True)
class Warmup(Schedule):
    """Warmup: a linear rise from ``start`` times the step size of ``base`` to all of it (Goyal et al. 2017).

    Parameters
    ----------
    base : Schedule, default Constant()
        Schedule to modify.
    epochs : float, default 1.0
        Length of the rise in epochs.
    start : float, default 0.1
        Initial fraction of the step size of ``base``, between 0 and 1.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    P. Goyal et al., "Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour", 2017.
    """

    base: Schedule = field(default_factory=Constant)
    epochs: float = 1.0
    start: float = 0.1

    def __post_init__(self) -> None:
        if not self.epochs > 0:
            raise invalid_parameter("epochs", "a positive number", self.epochs)
        if not 0 <= self.start <= 1:
            raise invalid_parameter("start", "between 0 and 1", self.start)

    def __call__(self, moment: Moment) -> Rates:
        risen = np.minimum(moment.epochs / self.epochs, 1)
        rates: Rates = self.base(moment) * (self.start + (1 - self.start) * risen)
        return rates
