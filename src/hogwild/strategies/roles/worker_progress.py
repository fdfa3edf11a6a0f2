"""Progress of workers: each position in a shard, the clocks of all workers, and the average of the iterates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from hogwild.messaging.deltas import Floats, Vector, frozen
from hogwild.messaging.job import RunConfig
from hogwild.messaging.messages import (
    COORDINATOR,
    Assign,
    Begin,
    Progress,
    StepScale,
    TermsReply,
    TermsRequest,
    TimeSpent,
)  # fmt: skip
from hogwild.messaging.protocol import Action, Send, Train, Trained


class ClockVector:
    """Clocks of the workers that a server waits for.

    The minimum is available without a pass over all workers.

    >>> clocks = ClockVector()
    >>> clocks.at_least("a", 3); clocks.at_least("b", 1); clocks.least
    1
    >>> clocks.without("b"), clocks.least, len(clocks)
    (True, 3, 1)
    >>> clocks.at_least("a", 5); clocks.without("a"), clocks.least, len(clocks)
    (True, 5, 0)
    """

    def __init__(self, clocks: dict[str, int] | None = None, least: int = 0) -> None:
        self._of = dict(clocks or {})
        self._at = Counter(self._of.values())  # Number of workers at each clock.
        self._least = least

    def __len__(self) -> int:
        return len(self._of)

    def __contains__(self, worker: str) -> bool:
        return worker in self._of

    @property
    def least(self) -> int:
        """The clock of the slowest worker, or its last value if there are no workers."""
        if self._of and self._least not in self._at:
            # The cost grows with the number of distinct clocks, not with the number of workers.
            self._least = min(self._at)
        return self._least

    def of(self, worker: str) -> int:
        """Return the clock of a worker."""
        return self._of[worker]

    def at_least(self, worker: str, clock: int) -> None:
        """Raise the clock of a worker to ``clock``, and add the worker if it is new. A clock never decreases."""
        before = self._of.get(worker, -1)
        if clock <= before:
            return
        if before >= 0:
            self._leave(before)
        self._of[worker] = clock
        self._at[clock] += 1
        if before < 0 and (len(self._of) == 1 or clock < self._least):
            self._least = clock

    def without(self, worker: str) -> bool:
        """Remove a worker, and return whether it was in the vector."""
        self._least = self.least  # The last worker may be removed now, and then this value remains.
        clock = self._of.pop(worker, None)
        if clock is None:
            return False
        self._leave(clock)
        return True

    def missing(self, here: set[str]) -> set[str]:
        """Return the workers in the vector that are not in ``here``."""
        return set(self._of) - here

    def copy(self) -> ClockVector:
        """Return an independent copy."""
        return ClockVector(self._of, self._least)

    def _leave(self, clock: int) -> None:
        self._at[clock] -= 1
        if not self._at[clock]:
            del self._at[clock]


REPORTS = 16  # Approximate number of progress reports of a worker in one epoch.
REQUESTS = 8  # Requests for the terms that are left, while a worker trains its part of them.


@dataclass(eq=False)
class ShardCursor:
    """Shards of a worker, the number of terms drawn from each shard, and the terms of the run that are left to it.

    Workers without rounds have no fixed number of terms (``shared``). The coordinator tells a worker how many terms
    all have trained and how many workers share the terms that are left. The worker may train its part of these, and
    asks again when it has trained 1 / ``REQUESTS`` of its part. A worker that has trained all of its part waits for the
    answer. So the workers together do not exceed the goal of the run by much, however long messages take.
    """

    config: RunConfig
    shared: bool = False  # Whether the worker trains on terms of the run until none are left.
    shards: dict[int, int] = field(default_factory=dict)  # Terms drawn so far, by shard.
    done: int = 0  # Terms trained in this incarnation of the worker.
    scale: float = 1.0  # Factor of the step sizes.
    spent: float = 0.0  # Share of the run's seconds that is spent.
    known: int = 0  # Terms that all workers together have trained, by the last message of the coordinator.
    members: int = 1  # Number of workers that share the other terms.
    _known_at: int = 0  # Terms of this worker among those that are known.
    _asked_at: int | None = None  # Terms of this worker before its unanswered request; None if there is none.
    _turn: int = 0  # Bursts so far, which select the next shard.
    _shard: int = 0  # Shard of the current burst.
    _unreported: dict[int, Progress] = field(default_factory=dict)  # Unreported progress, by shard.

    @property
    def epoch(self) -> int:
        """The epoch that the worker is in, if all workers are equally fast."""
        return self.done * self.config.workers // max(1, self.config.epoch)

    def take(self, body: Begin | Assign | StepScale | TimeSpent | TermsReply) -> None:
        """Replace the shards of the worker, the factor of its steps, the share of the time, or the terms of the run.

        For a shard that the worker already has, its own count of terms is at least as new as that of the coordinator.
        """
        if isinstance(body, StepScale):
            self.scale = body.scale
        elif isinstance(body, TimeSpent):
            self.spent = body.fraction
        elif isinstance(body, TermsReply):
            assert self._asked_at is not None
            self.known, self.members, self._known_at, self._asked_at = body.terms, body.members, self._asked_at, None
        else:
            # A new membership view may count fewer terms, because its parameters lack some deltas.
            if isinstance(body, Begin) and body.progress >= self.known:
                self.known, self.members, self._known_at = body.progress, max(1, len(body.members)), self.done
            self.shards = {shard: max(drawn, self.shards.get(shard, 0)) for shard, drawn in body.shards}

    def next_terms(self, most: int) -> int:
        """Return the number of terms of the next burst, at most ``most``; with 0 the worker has to wait.

        >>> cursor = ShardCursor(RunConfig(4, np.zeros(1), epoch=100, goal=100))
        >>> cursor.take(Begin(((0, 0),), clock=0, progress=60, members=("a", "b", "c", "d")))
        >>> cursor.next_terms(8), cursor.next_terms(20)
        (8, 10)
        """
        goal = self.config.goal
        return most if goal is None else max(0, min(most, self._part(goal) - (self.done - self._known_at)))

    def wait(self) -> Iterator[Action]:
        """Report the progress before a wait for more terms, and ask how many are left."""
        yield from self.report()
        yield from self._ask()

    def _part(self, goal: int) -> int:
        return -(-(goal - self.known) // self.members)

    def _ask(self) -> Iterator[Action]:
        if self._asked_at is None:
            self._asked_at = self.done
            yield from self.report()
            yield Send(COORDINATOR, TermsRequest())

    def burst(
        self, values: Floats | None, terms: int, progress: int, stride: int, together: bool = False, received: Vector |
        None = None,
    ) -> Train:  # fmt: skip
        """Return a burst on the next terms of the next shard, with the shards in turn."""
        turns = sorted(self.shards)
        if terms:
            self._shard = turns[self._turn % len(turns)]
            self._turn += 1
        shard = self._shard, self.config.workers
        first = self.shards.get(self._shard, 0)
        return Train(values, shard, first, terms, progress, stride, together, self.scale, self.spent, received)

    def trained(self, event: Trained, clock: int) -> Iterator[Action]:
        """Count a burst, report the progress about ``REPORTS`` times an epoch, and ask how many terms are left."""
        self.done += event.terms
        if self._shard in self.shards:
            self.shards[self._shard] += event.terms
        before = self._unreported.get(self._shard, Progress(self._shard, 0, 0, 0.0, 0, 0.0))
        total = Progress(
            self._shard, before.terms + event.terms, before.samples + event.samples, before.loss + event.loss, clock,
            event.step,
        )  # fmt: skip
        self._unreported[self._shard] = total
        if total.terms * self.config.workers * REPORTS >= self.config.epoch:
            yield from self.report()
        goal = self.config.goal
        if self.shared and goal is not None and REQUESTS * (self.done - self._known_at) >= self._part(goal):
            yield from self._ask()

    def report(self) -> Iterator[Action]:
        """Report the progress since the last report to the coordinator."""
        for progress in self._unreported.values():
            yield Send(COORDINATOR, progress)
        self._unreported = {}


class PolyakAverage:
    """Polyak average of the iterates in the last part of a run, whose start the configuration sets."""

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.count = 0
        self.mean: Floats | None = None

    def add(self, values: Floats, progress: int) -> None:
        """Add an iterate to the average, if the average has begun after ``progress`` terms of all workers."""
        if not self.config.begins_mean(progress):
            return
        self.count += 1
        if self.mean is None:
            self.mean = values.astype(np.float64)
        else:
            self.mean += (values - self.mean) / self.count

    def best(self, values: Floats) -> Floats:
        """Return the average of the iterates, or ``values`` before the average has begun, as a read-only array."""
        if self.mean is not None:
            return frozen(self.mean.astype(values.dtype))
        return frozen(values.copy()) if values.flags.writeable else values
