"""What an epoch needs, worked out while the one before it is under way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from hogwild.data.dataset import Chunk, Epoch, EpochPlan
from hogwild.training.step_sizes import StepSizes

MOST_ROWS = 2**22  # of an epoch whose order and steps may be in memory besides those of the present one


class PreparedEpoch:
    """An epoch that remembers all its chunks once it was asked for them."""

    def __init__(self, epoch: Epoch) -> None:
        self._epoch = epoch
        self._whole: list[EpochPlan | None] = []

    def __len__(self) -> int:
        return len(self._epoch)

    def __getitem__(self, number: int) -> Chunk:
        return self._epoch[number]

    def done(self, number: int) -> None:
        """Pass it on."""
        self._epoch.done(number)

    def whole(self) -> EpochPlan | None:
        """All of it at once, where it is in memory."""
        if not self._whole:
            self._whole.append(self._epoch.whole())
        return self._whole[0]


@dataclass(frozen=True, slots=True, eq=False)
class EpochPrefetch:
    """One epoch, and its steps as the clock had them when they were worked out."""

    number: int
    epoch: Epoch
    clock: StepSizes
    before: int  # updates before it
    steps: Callable[[int, int], NDArray[Any]] | None


def prefetch_epoch(number: int, epoch: Epoch, clock: StepSizes, rows: int) -> EpochPrefetch | None:
    """What the epoch of this number needs; None where that would take too much memory."""
    if rows > MOST_ROWS:
        return None
    kept, before = PreparedEpoch(epoch), number * rows
    kept.whole()
    return EpochPrefetch(number, kept, clock, before, clock.ahead(before, rows))
