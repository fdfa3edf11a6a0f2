"""Controlled staleness: a fixed order of updates, each of which was computed from parameters of a chosen age."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from hogwild.delays import Always, Delay
from hogwild.errors import ParameterError
from hogwild.messaging.deltas import Floats
from hogwild.messaging.messages import Push, number_of

MOST_VERSIONS = 10_000  # Largest staleness that is drawn, and number of versions that are kept for it.
MOST_BYTES = 2**30  # Largest size of all versions together, in bytes.


@dataclass(eq=False)
class ControlledStaleness:
    """Order of the updates of a parameter server whose staleness is prescribed, constant or drawn.

    A pull reserves the next update, number k say, and draws its staleness s. It is answered with the parameters after
    k - s updates, as soon as there are any, and its delta becomes update k, however late it arrives. So the delta is
    added exactly s updates after the parameters that it was computed from. The first updates are less stale, because
    there are no older parameters.

    Parameters
    ----------
    staleness : Delay
        Distribution of the staleness, in updates.
    start : array
        Initial parameters.
    seed : int, default 0
        Seed of the random numbers.

    Raises
    ------
    ParameterError
        If a constant staleness needs more memory for old parameters than is allowed.

    Examples
    --------
    >>> order = ControlledStaleness(Always(2), np.zeros(1, np.float32))
    >>> for worker in ("worker-0", "worker-1", "worker-2", "worker-3"): order.reserve(worker)
    >>> [order.version(worker) for worker in ("worker-0", "worker-1", "worker-2", "worker-3")]
    [0, 0, 0, 1]
    >>> order.is_ready("worker-2", version=0), order.is_ready("worker-3", version=0)
    (True, False)
    """

    staleness: Delay
    start: Floats
    seed: int = 0
    reserved: int = 0  # Updates that pulls have reserved.
    numbers: dict[str, tuple[int, int]] = field(default_factory=dict)  # Reserved update and its staleness, by worker.
    # Deltas that wait for their turn, by number of the update; None where a worker has left without one.
    arrived: dict[int, tuple[str, Push] | None] = field(default_factory=dict)
    versions: dict[int, Floats] = field(default_factory=dict)  # Parameters by the number of updates before them.

    def __post_init__(self) -> None:
        self.versions = self.versions or {0: self.start}
        if isinstance(self.staleness, Always) and self.staleness.seconds > self.most:
            raise ParameterError(
                f"A staleness of {self.staleness.seconds:,.0f} updates needs as many copies of {self.start.nbytes:,} "
                f"bytes: at most {self.most:,} are possible for parameters of this size."
            )

    @property
    def most(self) -> int:
        """The largest staleness for which old parameters are kept."""
        return max(1, min(MOST_VERSIONS, MOST_BYTES // max(1, self.start.nbytes)))

    def reserve(self, worker: str) -> None:
        """Reserve the next update for a worker; a repeated request keeps the update that it has."""
        if worker not in self.numbers:
            random = np.random.default_rng([self.seed, self.reserved])
            drawn = round(self.staleness.draw(random, number_of(worker), self.reserved))
            self.numbers[worker] = self.reserved, min(max(0, drawn), self.most)
            self.reserved += 1

    def version(self, worker: str) -> int:
        """Return the number of updates before the parameters that a worker reads."""
        number, staleness = self.numbers[worker]
        return max(0, number - staleness)

    def is_ready(self, worker: str, version: int) -> bool:
        """Return whether the parameters that a worker reads exist after ``version`` updates."""
        return self.version(worker) <= version

    def push(self, worker: str, push: Push) -> None:
        """Keep a delta until it is its turn."""
        number, _ = self.numbers.pop(worker)
        self.arrived[number] = worker, push

    def release(self, worker: str) -> None:
        """Give up the update of a worker that has crashed or left."""
        if worker in self.numbers:
            number, _ = self.numbers.pop(worker)
            self.arrived[number] = None

    def record(self, version: int, values: Floats) -> None:
        """Keep the parameters after ``version`` updates, and drop those that no pull can read any more."""
        self.versions[version] = values
        largest = round(self.staleness.seconds) if isinstance(self.staleness, Always) else self.most
        oldest = min([self.reserved - largest, *(self.version(worker) for worker in self.numbers)])
        while (first := next(iter(self.versions))) < min(oldest, version):
            del self.versions[first]

    def copy(self) -> ControlledStaleness:
        """Return a copy that later updates do not change."""
        return replace(self, numbers=dict(self.numbers), arrived=dict(self.arrived), versions=dict(self.versions))
