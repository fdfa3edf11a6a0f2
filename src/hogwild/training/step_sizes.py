"""Global progress: from counts of updates to the step of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hogwild.run import Budget
from hogwild.schedules import Moment, Schedule

MOST_AHEAD = 2**22  # steps that are worked out before they are needed: 16 MiB of them
_PIECE = 2**13  # steps that are worked out at a time, so that what lies between stays in the cache
LAST = 1 - 1e-6  # out of time, workers still end their chunks: with a step of exactly zero FTRL would divide by it


@dataclass(frozen=True, slots=True)
class StepSizes:
    """Turns a stretch of updates into their steps.

    ``spent`` is the share of the time budget that is gone, zero where time is no limit: then the steps depend on the
    updates alone, and one seed gives the same bits.

    >>> from hogwild.schedules import Cosine
    >>> StepSizes(Cosine(step=1.0), rows=2, epochs=2).rates(0, 4)
    array([1.  , 0.853..., 0.5 , 0.146...], dtype=float32)
    >>> StepSizes(Cosine(step=1.0), rows=2, epochs=2, alike=2).rates(1, 3)
    array([1. , 0.5, 0.5], dtype=float32)
    """

    schedule: Schedule
    rows: float  # updates in an epoch
    epochs: float | None  # None: time is the only limit
    scale: float = 1.0  # what the divergence guard has left of the step
    spent: Callable[[], float] = float
    earlier: int = 0  # updates of runs before this one, which the schedule counts on from
    precision: Any = np.float32  # that of the parameters
    alike: int = 1  # updates that take the step of the first of them: where terms are short, steps take as long

    def rates(self, before: int, count: int) -> NDArray[Any]:
        """The steps of ``count`` updates, when ``before`` of them have been done."""
        steps, spent = np.empty(count, self.precision), self.spent()
        if self.schedule.is_constant and count > 1:
            steps[:] = self.rates(before, 1)
            return steps
        if self.alike > 1 and count:
            early = before % self.alike
            some = -(-(early + count) // self.alike)
            found = self.schedule(cast(Moment, StepTable(self, before - early, some, spent, self.alike)))
            steps[:] = np.repeat(found * self.scale, self.alike)[early : early + count]
            return steps
        for first in range(0, count, _PIECE):
            piece = steps[first : first + _PIECE]
            found = self.schedule(cast(Moment, StepTable(self, before + first, len(piece), spent)))
            piece[:] = found if self.scale == 1 else found * self.scale
        return steps

    @property
    def known(self) -> bool:
        """Whether steps are known beforehand: those that depend on the time are not."""
        return self.spent is float

    def ahead(self, before: int, count: int) -> Callable[[int, int], NDArray[Any]] | None:
        """The same function for the next ``count`` updates, all worked out now; None where that cannot be.

        Workers that each called numpy for their own steps would wait for each other to get back into Python.
        """
        if not self.known or count > MOST_AHEAD:
            return None
        table = self.rates(before, count)

        def rates(first: int, terms: int) -> NDArray[Any]:
            return table[first - before : first - before + terms]

        return rates


class StepTable:
    """The moments of some updates, worked out as they are asked for: epochs of a millisecond have no time for others.

    >>> from hogwild.schedules import Constant
    >>> stretch = StepTable(StepSizes(Constant(1.0), rows=2, epochs=4), before=3, count=2, spent=0.0)
    >>> stretch.updates, stretch.epochs, stretch.fraction
    (array([4., 5.]), array([1.5, 2. ]), array([0.375, 0.5  ]))
    """

    def __init__(self, clock: StepSizes, before: int, count: int, spent: float, every: int = 1) -> None:
        self._clock, self._before, self._count, self._spent, self._every = clock, before, count, spent, every

    @cached_property
    def updates(self) -> NDArray[np.float64]:
        """How many there are with each, those of earlier runs too."""
        first = self._before + self._clock.earlier + 1
        return np.arange(first, first + self._count * self._every, self._every, dtype=np.float64)

    @cached_property
    def epochs(self) -> NDArray[np.float64]:
        """How many walks over the data were done before each."""
        last = self._before + self._count * self._every
        epochs = np.arange(self._before, last, self._every, dtype=np.float64)
        epochs /= self._clock.rows
        return epochs

    @cached_property
    def fraction(self) -> NDArray[np.float64]:
        """Which share of the budget was spent before each."""
        fraction = self.epochs / self._clock.epochs if self._clock.epochs else np.zeros(self._count)
        if self._spent > 0:
            np.maximum(fraction, self._spent, out=fraction)
        if self._count and fraction[-1] > LAST:  # it never falls
            np.minimum(fraction, LAST, out=fraction)
        return fraction


def time_spent(budget: Budget, seconds: Callable[[], float]) -> Callable[[], float]:
    """The share of a budget's seconds that is gone; always zero where it has none."""
    limit = budget.seconds
    return float if limit is None else lambda: seconds() / limit
