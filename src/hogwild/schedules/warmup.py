"""Warmup at the start of any schedule, and linear scaling with the batch size (Goyal et al. 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from hogwild.registry import invalid_parameter, is_number, not_an_object
from hogwild.schedules.decay import Constant
from hogwild.schedules.schedule import Moment, Rates, Schedule, with_base


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

    numbers = ("epochs", "start")

    def __post_init__(self) -> None:
        _check_base(self.base)
        if not is_number(self.epochs) or not 0 < self.epochs < math.inf:
            raise invalid_parameter("epochs", "a positive number of epochs", self.epochs)
        if not is_number(self.start) or not 0 <= self.start <= 1:
            raise invalid_parameter("start", "between 0 and 1", self.start)

    def __call__(self, moment: Moment) -> Rates:
        risen = np.minimum(moment.epochs / self.epochs, 1)
        rates: Rates = self.base(moment) * (self.start + (1 - self.start) * risen)
        return rates

    @property
    def needs_stall(self) -> bool:
        """Whether the base reacts to a stall of the objective."""
        return self.base.needs_stall

    def after_stall(self) -> Warmup | None:
        """Return the schedule whose base is the one that follows a stall; None ends the run."""
        smaller = self.base.after_stall()
        return None if smaller is None else replace(self, base=smaller)


S = TypeVar("S", bound=Schedule)


def _check_base(base: Schedule) -> None:
    """Raise ``ParameterError`` for a base that is no schedule, such as a name or a class."""
    if not isinstance(base, Schedule):
        raise not_an_object("base", "a schedule such as Cosine(0.1)", base, Schedule)


@dataclass(frozen=True, slots=True)
class LinearScaling(Schedule):
    """Linear scaling rule: a schedule for ``reference`` samples per step, applied to steps of ``total`` samples.

    The step sizes of ``base`` are multiplied by k = ``total`` / ``reference``, because k small steps at nearly the same
    parameters are one large step. At the start of a run the parameters change too fast for that. So the factor rises
    from 1 to k over the first ``warmup`` epochs, with every step (Goyal et al. 2017).

    The samples per step are those whose changes are averaged: the batch of a worker, times the number of workers where
    the strategy averages their changes. Workers of ``Hogwild`` apply each change in full, so that only the batch
    counts. Each row of a problem of rows is a batch of one: use ``reference=1`` there.

    Parameters
    ----------
    base : Schedule, default Constant()
        Schedule for steps of ``reference`` samples.
    reference : int, default 256
        Number of samples per step for which ``base`` is meant.
    total : int, optional
        Number of samples per step; by default that of the run.
    warmup : float, default 5.0
        Epochs over which the factor rises from 1 to k.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> LinearScaling(Constant(0.1), total=1024)(Moment(np.ones(3), np.array([0.0, 2.5, 5.0]), np.zeros(3)))
    array([0.1 , 0.25, 0.4 ])

    References
    ----------
    P. Goyal et al., "Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour", 2017.
    """

    base: Schedule = field(default_factory=Constant)
    reference: int = 256
    total: int | None = None
    warmup: float = 5.0

    numbers = ("reference", "warmup")
    scales_with_batch = True

    def __post_init__(self) -> None:
        _check_base(self.base)
        if not is_number(self.reference) or not self.reference > 0:
            raise invalid_parameter("reference", "a positive number of samples", self.reference)
        if self.total is not None and (not is_number(self.total) or not self.total > 0):
            raise invalid_parameter("total", "a positive number of samples", self.total)
        if not is_number(self.warmup) or not self.warmup >= 0:
            raise invalid_parameter("warmup", "a number of epochs", self.warmup)

    def __call__(self, moment: Moment) -> Rates:
        times = (self.total or self.reference) / self.reference
        # A factor below 1 needs no warmup.
        if times > 1 and self.warmup:
            factor = 1 + (times - 1) * np.minimum(moment.epochs / self.warmup, 1)
        else:
            factor = np.full(moment.epochs.shape, times)
        rates: Rates = self.base(moment) * factor
        return rates

    @property
    def needs_stall(self) -> bool:
        """Whether the base reacts to a stall of the objective."""
        return self.base.needs_stall

    def after_stall(self) -> LinearScaling | None:
        """Return the schedule whose base is the one that follows a stall; None ends the run."""
        smaller = self.base.after_stall()
        return None if smaller is None else replace(self, base=smaller)


def with_total(schedule: S, total: int) -> S:
    """Return the schedule for steps of ``total`` samples, unless it specifies another number.

    >>> with_total(LinearScaling(Constant(0.1)), 512).total
    512
    """
    if isinstance(schedule, LinearScaling) and schedule.total is None:
        schedule = replace(schedule, total=total)
    return schedule if schedule.base is None else with_base(schedule, with_total(schedule.base, total))


def warmup_epochs(schedule: Schedule) -> float:
    """Return the number of epochs after which the warm-up of a schedule ends; 0 if it has none.

    >>> warmup_epochs(LinearScaling(Warmup(epochs=5))), warmup_epochs(Constant())
    (5, 0.0)
    """
    own = schedule.epochs if isinstance(schedule, Warmup) else 0.0
    return own if schedule.base is None else max(own, warmup_epochs(schedule.base))


def scales(schedule: Schedule) -> bool:
    """Return whether a schedule depends on the batch size.

    >>> scales(LinearScaling()), scales(Constant())
    (True, False)
    """
    return schedule.scales_with_batch or (schedule.base is not None and scales(schedule.base))
