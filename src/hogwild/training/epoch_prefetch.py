"""Prefetch of an epoch: its order of rows and step sizes, computed while the epoch before it is trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from hogwild.data.dataset import Chunk, Epoch, EpochPlan
from hogwild.training.step_sizes import StepSizes

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
class EpochPrefetch:
    """Prefetched epoch, with its step sizes and the ``StepSizes`` from which they were computed."""

    number: int
    epoch: Epoch
    clock: StepSizes
    before: int  # updates before this epoch
    steps: Callable[[int, int], NDArray[Any]] | None


def prefetch_epoch(number: int, epoch: Epoch, clock: StepSizes, rows: int) -> EpochPrefetch | None:
    """Compute the order and step sizes of an epoch; return None for more than ``MOST_ROWS`` rows."""
    if rows > MOST_ROWS:
        return None
    kept, before = PreparedEpoch(epoch), number * rows
    kept.whole()
    return EpochPrefetch(number, kept, clock, before, clock.ahead(before, rows))
