"""Cursor of a worker over its shards, for all strategies: it draws terms, counts them and reports progress."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hogwild.messaging.actions import Action, Send, Train
from hogwild.messaging.deltas import Floats
from hogwild.messaging.events import Trained
from hogwild.messaging.messages import COORDINATOR, Assign, Begin, Progress
from hogwild.messaging.run_config import RunConfig

REPORTS = 16  # Approximate number of progress reports of a worker in one epoch.


@dataclass(eq=False)
class ShardCursor:
    """Shards of a worker, and the number of terms drawn from each shard."""

    config: RunConfig
    shards: dict[int, int] = field(default_factory=dict)  # Terms drawn so far, by shard.
    done: int = 0  # Terms trained in this incarnation of the worker.
    _turn: int = 0  # Bursts so far, which select the next shard.
    _shard: int = 0  # Shard of the current burst.
    _unsaid: dict[int, Progress] = field(default_factory=dict)  # Unreported progress, by shard.

    @property
    def epoch(self) -> int:
        """The epoch that the worker is in, if all workers are equally fast."""
        return self.done * self.config.workers // max(1, self.config.epoch)

    def take(self, body: Begin | Assign) -> None:
        """Replace the shards of the worker.

        For a shard that the worker already has, its own count of terms is at least as new as that of the coordinator.
        """
        self.shards = {shard: max(drawn, self.shards.get(shard, 0)) for shard, drawn in body.shards}

    def burst(self, values: Floats, terms: int, progress: int, stride: int, together: bool = False) -> Train:
        """Return a burst on the next terms of the next shard, with the shards in turn."""
        turns = sorted(self.shards)
        self._shard = turns[self._turn % len(turns)]
        self._turn += 1
        shard = self._shard, self.config.workers
        return Train(values, shard, self.shards[self._shard], terms, progress, stride, together)

    def trained(self, event: Trained, clock: int) -> Iterator[Action]:
        """Count a burst, and report the progress about ``REPORTS`` times an epoch."""
        self.done += event.terms
        if self._shard in self.shards:
            self.shards[self._shard] += event.terms
        before = self._unsaid.get(self._shard, Progress(self._shard, 0, 0, 0.0, 0))
        said = Progress(
            self._shard, before.terms + event.terms, before.samples + event.samples, before.loss + event.loss, clock
        )
        self._unsaid[self._shard] = said
        if said.terms * self.config.workers * REPORTS >= self.config.epoch:
            yield from self.report()

    def report(self) -> Iterator[Action]:
        """Report the progress since the last report to the coordinator."""
        for progress in self._unsaid.values():
            yield Send(COORDINATOR, progress)
        self._unsaid = {}
