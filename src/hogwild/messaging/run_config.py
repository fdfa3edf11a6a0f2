"""What all participants of a run know from the beginning."""

from __future__ import annotations

from dataclasses import dataclass, field

from hogwild.messaging.deltas import Floats


@dataclass(frozen=True, slots=True, eq=False)
class RunConfig:
    """How many workers, from which parameters, for how long.

    A term is what one update is made of: a row, or a minibatch. ``late`` are workers that are not there at the start.
    """

    workers: int
    start: Floats = field(repr=False)
    epoch: int  # terms of all workers in one walk over the data
    goal: int | None  # terms in all; None: until something else ends it
    average: float = 0.0  # the last share of the run whose mean is the result
    target: float | None = None
    patience: int | None = None  # epochs without a better held-out loss
    seconds: float | None = None
    silence: float = 600.0  # seconds that nobody says anything, after which the run has failed
    late: frozenset[int] = frozenset()
    parameters: int | None = None  # how many of the numbers exchanged are parameters; the others are rules' memory

    saves: bool = False  # whether it is written down after each epoch, to go on from

    @property
    def size(self) -> int:
        """How many numbers are exchanged."""
        return len(self.start)

    @property
    def quota(self) -> int:
        """How many terms each worker has, where all have as many."""
        assert self.goal is not None
        return -(-self.goal // self.workers)

    def begins_mean(self, progress: int) -> bool:
        """Whether the mean of the iterates has begun."""
        return bool(self.average) and self.goal is not None and progress > (1 - self.average) * self.goal
