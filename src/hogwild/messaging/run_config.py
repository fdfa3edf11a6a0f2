"""Configuration of a run that every node has from the start."""

from __future__ import annotations

from dataclasses import dataclass, field

from hogwild.messaging.deltas import Floats


@dataclass(frozen=True, slots=True, eq=False)
class RunConfig:
    """Configuration of a run by messages.

    A term is one summand of the objective, a row or a minibatch: one term is one update. ``late`` are the numbers of
    the workers that are absent at the start and join later.
    """

    workers: int
    start: Floats = field(repr=False)  # Initial values of all exchanged numbers.
    epoch: int  # Terms of all workers in one epoch.
    goal: int | None  # Terms of the whole run; None if only another limit ends the run.
    average: float = 0.0  # Fraction of the run, at its end, whose averaged iterates are the result.
    target: float | None = None  # Loss at which the run stops.
    patience: int | None = None  # Epochs without a better held-out loss, after which the run stops.
    seconds: float | None = None  # Limit of the duration of the run, in seconds.
    silence: float = 600.0  # Seconds without any message, after which the run fails.
    late: frozenset[int] = frozenset()
    # Number of exchanged values that are parameters. The values after them are state of the update rule.
    parameters: int | None = None

    saves: bool = False  # Whether each epoch ends with a snapshot from which the run can resume.

    @property
    def size(self) -> int:
        """The number of values that nodes exchange: parameters and state of the update rule."""
        return len(self.start)

    @property
    def quota(self) -> int:
        """The number of terms of each worker, in runs whose workers all have the same number."""
        assert self.goal is not None
        return -(-self.goal // self.workers)

    def begins_mean(self, progress: int) -> bool:
        """Return whether the average of the iterates includes the iterate after ``progress`` terms."""
        return bool(self.average) and self.goal is not None and progress > (1 - self.average) * self.goal
