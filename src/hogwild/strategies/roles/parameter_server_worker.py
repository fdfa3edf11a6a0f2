"""A worker of servers: pull, train, push."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from hogwild.messaging.actions import Action, Send
from hogwild.messaging.compression import Compression, Sender
from hogwild.messaging.deltas import Floats, change, frozen, part
from hogwild.messaging.events import Delivered, Event, PeerJoined, Started, Trained
from hogwild.messaging.messages import (
    COORDINATOR,
    Assign,
    Begin,
    Body,
    JoinReply,
    JoinRequest,
    Leave,
    Pull,
    PullReply,
    Push,
    Ready,
    Stop,
    Stopped,
    number_of,
    server,
)  # fmt: skip
from hogwild.messaging.run_config import RunConfig
from hogwild.strategies.roles.shard_cursor import ShardCursor


class ParameterServerWorker:
    """Trains ``push_every`` terms, pushes the change to every server, and after ``pull_every`` pushes pulls again.

    With ``rounds`` it ends by itself, after as many terms as every worker has; else when it is told to.
    """

    def __init__(
        self, config: RunConfig, parts: tuple[tuple[int, int], ...], *, push_every: int = 1, pull_every: int = 1,
        rounds: bool = False, together: bool = False, compression: Compression | None = None,
    ) -> None:  # fmt: skip
        self.config, self.parts, self.push_every, self.pull_every = config, parts, push_every, pull_every
        self.rounds, self.together = rounds, together
        self.labour, self.sender = ShardCursor(config), Sender(compression)
        self.clock = 0  # pushes so far
        self.values: Floats = config.start
        self.got: dict[int, PullReply] = {}  # by server
        self.places: dict[int, int] | None = None  # while it enters
        self.awaits = False  # whether it waits for parameters
        self.halting = False
        self.ended = False
        self._own = 0  # pushes since it pulled

    @property
    def epoch(self) -> int:
        """In which walk over the data it is."""
        return self.labour.epoch

    def react(self, event: Event) -> Iterable[Action]:
        """React to what happened."""
        if isinstance(event, Started):
            yield Send(COORDINATOR, Ready())
        elif isinstance(event, Delivered):
            yield from self._heard(event.sender, event.body)
        elif isinstance(event, Trained):
            yield from self._trained(event)
        elif isinstance(event, PeerJoined) and event.peer.startswith("server"):
            yield from self._again(number_of(event.peer))

    def _heard(self, sender: str, body: Body) -> Iterator[Action]:
        if isinstance(body, Begin) and not self.ended:  # it was told to end before it began
            self.labour.take(body)
            if body.clock < 0:
                self.places = {}
                for number in range(len(self.parts)):
                    yield Send(server(number), JoinRequest())
            else:
                yield from self._pull()
        elif isinstance(body, Assign):
            self.labour.take(body)
        elif isinstance(body, JoinReply) and self.places is not None:
            self.places[number_of(sender)] = body.clock
            if len(self.places) == len(self.parts):
                self.clock, self.places = max(self.places.values()), None
                yield from self._pull()
        elif isinstance(body, PullReply) and self.awaits and body.clock == self.clock:
            self.got[number_of(sender)] = body
            if len(self.got) == len(self.parts):
                yield from self._pulled()
        elif isinstance(body, Stop) and not self.ended:
            self.halting = True
            if self.awaits or self.places is not None or not self.labour.shards:
                yield from self._leave()

    def _again(self, number: int) -> Iterator[Action]:
        """A server is back: it may have forgotten what it was asked."""
        if self.places is not None and number not in self.places:
            yield Send(server(number), JoinRequest())
        elif self.awaits and number not in self.got:
            yield Send(server(number), Pull(self.clock))

    def _pull(self) -> Iterator[Action]:
        if self._terms() == 0:
            yield from self._leave()
            return
        self.awaits, self.got = True, {}
        for number in range(len(self.parts)):
            yield Send(server(number), Pull(self.clock))

    def _pulled(self) -> Iterator[Action]:
        self.awaits, self._own = False, 0
        pieces = [self.got[number].values for number in range(len(self.parts))]
        self.values = pieces[0] if len(pieces) == 1 else frozen(np.concatenate(pieces))
        yield self._burst()

    def _burst(self) -> Action:
        heard = self.got[0]
        progress = heard.progress + self._own * self.push_every * heard.members
        return self.labour.burst(self.values, self._terms(), progress, heard.members, self.together)

    def _terms(self) -> int:
        """How many terms the next burst has; none if there is nothing left to do."""
        limit = self.config.quota - self.clock * self.push_every if self.rounds else self._left()
        return max(0, min(self.push_every, limit))

    def _left(self) -> int:
        return self.push_every if self.config.goal is None else self.config.goal - self.labour.done

    def _trained(self, event: Trained) -> Iterator[Action]:
        moved = self.sender(change(self.values, event.values))
        for number, (start, stop) in enumerate(self.parts):
            read, piece = self.got[number].version, part(moved, start, stop)
            yield Send(server(number), Push(piece, self.clock, read, self._own, event.terms, event.samples, event.step))
        self.clock += 1
        self._own += 1
        yield from self.labour.trained(event, self.clock)
        if self.halting or self._terms() == 0:
            yield from self._leave()
        elif self._own >= self.pull_every:
            yield from self._pull()
        else:
            self.values = frozen(event.values)
            yield self._burst()

    def _leave(self) -> Iterator[Action]:
        self.ended, self.awaits, self.places = True, False, None
        yield from self.labour.report()
        for number in range(len(self.parts)):
            yield Send(server(number), Leave())
        yield Send(COORDINATOR, Stopped(self._counts()))

    def _counts(self) -> dict[str, Any]:
        return {"terms": self.labour.done, "clock": self.clock}
