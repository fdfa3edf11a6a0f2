"""A larger step for a larger batch."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from hogwild.registry import invalid_parameter
from hogwild.schedules.constant import Constant
from hogwild.schedules.schedule import Moment, Rates, Schedule, with_base

S = TypeVar("S", bound=Schedule)


@dataclass(frozen=True, slots=True)
class LinearScaling(Schedule):
    """A schedule ``base``, made for ``reference`` samples in a batch, with k = ``total`` / ``reference`` times as many.

    Its steps are multiplied by k: k small steps at nearly the same place are one large one. At the start of a run that
    is not so, and the factor rises from 1 to k over the first ``warmup`` epochs, a little with every step (Goyal et al.
    2017). A ``total`` that is left out is what a step of the run takes.

    >>> LinearScaling(Constant(0.1), total=1024)(Moment(np.ones(3), np.array([0.0, 2.5, 5.0]), np.zeros(3)))
    array([0.1 , 0.25, 0.4 ])
    """

    base: Schedule = field(default_factory=Constant)
    reference: int = 256
    total: int | None = None
    warmup: float = 5.0

    scales_with_batch = True

    def __post_init__(self) -> None:
        if not self.reference > 0:
            raise invalid_parameter("reference", "a positive number of samples", self.reference)
        if self.total is not None and not self.total > 0:
            raise invalid_parameter("total", "a positive number of samples", self.total)
        if not self.warmup >= 0:
            raise invalid_parameter("warmup", "a number of epochs", self.warmup)

    def __call__(self, moment: Moment) -> Rates:
        times = (self.total or self.reference) / self.reference
        if times > 1 and self.warmup:  # a smaller step needs no warming up
            factor = 1 + (times - 1) * np.minimum(moment.epochs / self.warmup, 1)
        else:
            factor = np.full(moment.epochs.shape, times)
        rates: Rates = self.base(moment) * factor
        return rates


def with_total(schedule: S, total: int) -> S:
    """The same schedule for steps of so many samples, where it says nothing else.

    >>> with_total(LinearScaling(Constant(0.1)), 512).total
    512
    """
    if isinstance(schedule, LinearScaling) and schedule.total is None:
        schedule = replace(schedule, total=total)
    return schedule if schedule.base is None else with_base(schedule, with_total(schedule.base, total))


def scales(schedule: Schedule) -> bool:
    """Whether a schedule goes by the size of the batch.

    >>> scales(LinearScaling()), scales(Constant())
    (True, False)
    """
    return schedule.scales_with_batch or (schedule.base is not None and scales(schedule.base))
