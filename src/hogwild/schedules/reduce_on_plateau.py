"""A step that falls when the objective no longer does."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hogwild.registry import invalid_parameter
from hogwild.schedules.schedule import Moment, Rates, Schedule, Step, check_step, positive_step


@dataclass(frozen=True, slots=True)
class Adaptive(Schedule):
    """The same step as long as the objective falls, then ``step / factor``, and so on down to ``least``.

    It goes with a budget that has a ``tolerance``, which says what falling means; scikit-learn's ``adaptive``.

    >>> Adaptive(step=0.1).after_stall()
    Adaptive(step=0.02, factor=5.0, least=1e-06)
    """

    step: Step = "auto"
    factor: float = 5.0
    least: float = 1e-6

    needs_stall = True

    def __post_init__(self) -> None:
        check_step(self.step)
        if not self.factor > 1:
            raise invalid_parameter("factor", "a number above 1", self.factor)

    def __call__(self, moment: Moment) -> Rates:
        return np.full(moment.updates.shape, positive_step(self))

    def after_stall(self) -> Adaptive | None:
        """The schedule to go on with when the objective has stalled; None: it is time to stop."""
        return replace(self, step=positive_step(self) / self.factor) if positive_step(self) > self.least else None
