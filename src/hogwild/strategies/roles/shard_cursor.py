"""What a worker does whatever its strategy: draw terms from its shards, count them, and report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hogwild.messaging.actions import Action, Send, Train
from hogwild.messaging.deltas import Floats
from hogwild.messaging.events import Trained
from hogwild.messaging.messages import COORDINATOR, Assign, Begin, Progress
from hogwild.messaging.run_config import RunConfig

REPORTS = 16  # an epoch of a worker's own part has about so many


@dataclass(eq=False)
class ShardCursor:
    """A worker's shards and what it has drawn of each."""

    config: RunConfig
    shards: dict[int, int] = field(default_factory=dict)  # shard -> terms drawn of it so far
    done: int = 0  # terms in this life
    _turn: int = 0
    _shard: int = 0  # of the burst that is going on
    _unsaid: dict[int, Progress] = field(default_factory=dict)

    @property
    def epoch(self) -> int:
        """In which walk over the data it is, if the others are as fast."""
        return self.done * self.config.workers // max(1, self.config.epoch)

    def take(self, body: Begin | Assign) -> None:
        """These shards are its own from now on; of those it has already it knows best how far it is."""
        self.shards = {shard: max(drawn, self.shards.get(shard, 0)) for shard, drawn in body.shards}

    def burst(self, values: Floats, terms: int, progress: int, stride: int, together: bool = False) -> Train:
        """Train on the next terms of the next shard."""
        turns = sorted(self.shards)
        self._shard = turns[self._turn % len(turns)]
        self._turn += 1
        shard = self._shard, self.config.workers
        return Train(values, shard, self.shards[self._shard], terms, progress, stride, together)

    def trained(self, event: Trained, clock: int) -> Iterator[Action]:
        """Count a burst, and report now and then."""
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
        """Say what was not said yet."""
        for progress in self._unsaid.values():
            yield Send(COORDINATOR, progress)
        self._unsaid = {}
