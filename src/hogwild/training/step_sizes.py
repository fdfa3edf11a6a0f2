"""Step sizes of updates, and the prefetch of an epoch's order and step sizes while the epoch before it is trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hogwild.data.dataset import Chunk, Epoch, EpochPlan
from hogwild.lazy import cached_property
from hogwild.schedules import Moment, Schedule
from hogwild.schedules.schedule import check_steps
from hogwild.stopping import Budget

MOST_AHEAD = 2**22  # largest number of step sizes that are computed in advance: 16 MiB of them
_PIECE = 2**13  # number of step sizes that are computed at a time, so that temporaries fit into the cache
# Largest share of the budget that a schedule sees. When the time is up, workers still finish their chunks. A schedule
# that ends at zero would then give a step size of exactly zero, by which FTRL would divide.
LAST = 1 - 1e-6


@dataclass(frozen=True, slots=True)
class StepSizes:
    """Step sizes of a range of updates.

    ``spent`` returns the share of the time budget that is spent, and zero without a limit of time. In that case the
    step sizes depend on the updates alone, and one seed gives the same bits.

    >>> from hogwild.schedules import Cosine
    >>> StepSizes(Cosine(step=1.0), rows=2, epochs=2).rates(0, 4)
    array([1.  , 0.853..., 0.5 , 0.146...], dtype=float32)
    >>> StepSizes(Cosine(step=1.0), rows=2, epochs=2, alike=2).rates(1, 3)
    array([1. , 0.5, 0.5], dtype=float32)
    """

    schedule: Schedule
    rows: float  # updates of an epoch
    epochs: float | None  # number of epochs; None: time is the only limit
    scale: float = 1.0  # factor of the divergence guard
    spent: Callable[[], float] = float
    earlier: int = 0  # updates of runs before this one, from which the schedule continues
    precision: Any = np.float32  # type of the parameters
    # Number of consecutive updates that share one step size. Where terms are short, computing a step size for each
    # would take as long as the updates.
    alike: int = 1

    def rates(self, before: int, count: int) -> NDArray[Any]:
        """Return the step sizes of ``count`` updates, after ``before`` updates.

        Raises
        ------
        ParameterError
            If a schedule of the user's gives a step size that is negative or not finite.
        """
        return check_steps(self.schedule, self._rates(before, count))

    def _rates(self, before: int, count: int) -> NDArray[Any]:
        steps, spent = np.empty(count, self.precision), self.spent()
        if self.schedule.is_constant and count > 1:
            steps[:] = self._rates(before, 1)
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

    def spread(self, before: int, count: int, parts: int) -> NDArray[Any]:
        """Return the step size of the first update of each of ``parts`` equal parts of ``count`` updates.

        >>> from hogwild.schedules import Cosine
        >>> StepSizes(Cosine(step=1.0), rows=4, epochs=2).spread(0, 8, 4)
        array([1.  , 0.853..., 0.5 , 0.146...])
        """
        found = self.schedule(cast(Moment, StepTable(self, before, parts, self.spent(), count / parts)))
        return check_steps(self.schedule, np.broadcast_to(np.asarray(found, float) * self.scale, parts))

    @property
    def known(self) -> bool:
        """Whether step sizes can be computed in advance: those that depend on time cannot."""
        return self.spent is float

    def ahead(self, before: int, count: int) -> Callable[[int, int], NDArray[Any]] | None:
        """Return a function like ``rates``, with the step sizes of the next ``count`` updates already computed.

        Return None for step sizes that are not known in advance, or for more than ``MOST_AHEAD``. Workers that called
        NumPy for their own step sizes would wait for each other to enter Python.
        """
        if not self.known or count > MOST_AHEAD:
            return None
        table = self.rates(before, count)

        def rates(first: int, terms: int) -> NDArray[Any]:
            return table[first - before : first - before + terms]

        return rates


class StepTable:
    """Moments of several updates; each array is computed when a schedule first reads it.

    An epoch of one millisecond leaves no time for arrays that the schedule does not read.

    >>> from hogwild.schedules import Constant
    >>> stretch = StepTable(StepSizes(Constant(1.0), rows=2, epochs=4), before=3, count=2, spent=0.0)
    >>> stretch.updates, stretch.epochs, stretch.fraction
    (array([4., 5.]), array([1.5, 2. ]), array([0.375, 0.5  ]))
    """

    def __init__(self, clock: StepSizes, before: int, count: int, spent: float, every: float = 1) -> None:
        self._clock, self._before, self._count, self._spent, self._every = clock, before, count, spent, every

    @cached_property
    def updates(self) -> NDArray[np.float64]:
        """The number of updates up to and including each, those of earlier runs included."""
        return self._before + self._clock.earlier + 1 + self._every * np.arange(self._count, dtype=np.float64)

    @cached_property
    def epochs(self) -> NDArray[np.float64]:
        """The number of epochs before each update."""
        epochs = self._before + self._every * np.arange(self._count, dtype=np.float64)
        epochs /= self._clock.rows
        return epochs

    @cached_property
    def fraction(self) -> NDArray[np.float64]:
        """The share of the budget that is spent before each update."""
        fraction = self.epochs / self._clock.epochs if self._clock.epochs else np.zeros(self._count)
        if self._spent > 0:
            np.maximum(fraction, self._spent, out=fraction)
        if self._count and fraction[-1] > LAST:  # the fraction never decreases, so its last entry is the largest
            np.minimum(fraction, LAST, out=fraction)
        return fraction


def time_spent(budget: Budget, seconds: Callable[[], float]) -> Callable[[], float]:
    """Return a function that gives the spent share of a budget's seconds; always zero without such a limit."""
    limit = budget.seconds
    return float if limit is None else lambda: seconds() / limit


# Largest number of rows of an epoch that is prefetched; its order and step sizes need memory beside the present ones.
MOST_ROWS = 2**22


class PreparedEpoch:
    """Epoch that keeps its plan after the first request for it."""

    def __init__(self, epoch: Epoch) -> None:
        self._epoch = epoch
        self._whole: list[EpochPlan | None] = []

    def __len__(self) -> int:
        return len(self._epoch)

    def __getitem__(self, number: int) -> Chunk:
        return self._epoch[number]

    def done(self, number: int) -> None:
        """Mark a chunk of the underlying epoch as done."""
        self._epoch.done(number)

    def whole(self) -> EpochPlan | None:
        """Return the plan of the whole epoch; None if its data is not in memory."""
        if not self._whole:
            self._whole.append(self._epoch.whole())
        return self._whole[0]


@dataclass(frozen=True, slots=True, eq=False)
class SplitEpoch:
    """Epoch of rows in memory in which chunks also end where records are made."""

    plan: EpochPlan
    records: NDArray[np.int64]  # numbers of the chunks before which records are made

    def __len__(self) -> int:
        return len(self.plan.starts) - 1

    def __getitem__(self, number: int) -> Chunk:
        first, end = self.plan.starts[number : number + 2]
        return Chunk(self.plan.rows, self.plan.order[first:end])

    def done(self, number: int) -> None:
        """Do nothing: rows in memory stay there."""

    def whole(self) -> EpochPlan:
        """Return the plan of all chunks."""
        return self.plan

    def next_record(self, chunk: int) -> int:
        """Return the first chunk after ``chunk`` before which a record is made, or the end of the epoch."""
        found = int(np.searchsorted(self.records, chunk, side="right"))
        return int(self.records[found]) if found < len(self.records) else len(self)

    def terms(self, first: int, end: int) -> int:
        """Return the number of rows from chunk ``first`` up to ``end``."""
        return int(self.plan.starts[end] - self.plan.starts[first])

    def fits_in_chunk(self, first: int, end: int) -> bool:
        """Return whether the rows from chunk ``first`` up to ``end`` are no more than a chunk has without records."""
        undivided = self.plan.starts if self.plan.undivided is None else self.plan.undivided
        return self.terms(first, end) <= int(np.diff(undivided).max(initial=0))


def split_epoch(plan: EpochPlan, every: int | None, before: int, most: int | None = None) -> SplitEpoch:
    """Return an epoch after ``before`` updates in which chunks also end after each multiple of ``every`` updates.

    ``most`` is the largest number of rows of a chunk. Where either is None, it ends no chunk.
    """
    rows = int(plan.starts[-1])
    places = np.empty(0, np.int64)
    if every is not None:
        places = np.arange(every - before % every, rows, every, dtype=np.int64)
    starts = np.union1d(plan.starts, places)
    if most is not None:
        starts = np.union1d(starts, np.arange(0, rows, most))
    undivided = None if every is None else plan.starts
    return SplitEpoch(replace(plan, starts=starts, undivided=undivided), np.searchsorted(starts, places))


@dataclass(frozen=True, slots=True, eq=False)
class EpochPrefetch:
    """Prefetched epoch, with its step sizes and the ``StepSizes`` from which they were computed."""

    number: int
    epoch: Epoch
    clock: StepSizes
    before: int  # updates before this epoch
    steps: Callable[[int, int], NDArray[Any]] | None


def prefetch_epoch(number: int, epoch: Epoch, clock: StepSizes, rows: int, steps: bool) -> EpochPrefetch | None:
    """Compute the order of an epoch, and its ``steps`` if asked; return None for more than ``MOST_ROWS`` rows."""
    if rows > MOST_ROWS:
        return None
    kept, before = PreparedEpoch(epoch), number * rows
    kept.whole()
    return EpochPrefetch(number, kept, clock, before, clock.ahead(before, rows) if steps else None)
