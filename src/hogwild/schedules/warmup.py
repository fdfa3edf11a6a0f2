"""A gentle start for any schedule."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hogwild.registry import invalid_parameter
from hogwild.schedules.constant import Constant
from hogwild.schedules.schedule import Moment, Rates, Schedule


@dataclass(frozen=True, slots=True)
class Warmup(Schedule):
    """Rise linearly to the schedule ``base`` over the first ``epochs``, from ``start`` times it (Goyal et al. 2017)."""

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
