"""Parameter-server worker: pulls parameters, trains, and pushes deltas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from hogwild.messaging.compression import Compression, Sender
from hogwild.messaging.deltas import Floats, change, frozen, part
from hogwild.messaging.job import RunConfig
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
    is_server,
    number_of,
    server,
)  # fmt: skip
from hogwild.messaging.node import NO_DELAYS
from hogwild.messaging.protocol import Action, Delivered, Event, PeerJoined, Send, Started, Trained
from hogwild.strategies.roles.worker_progress import ShardCursor


class ParameterServerWorker:
    """Parameter-server worker (Downpour, Dean et al. 2012).

    The worker trains ``push_every`` terms and pushes the delta to every server. After ``pull_every`` pushes it pulls
    again. With ``rounds`` the worker ends by itself, after the same number of terms as every other worker. Otherwise it
    ends when the coordinator sends Stop, or when it has trained all terms of the run itself. With ``together`` all
    terms of a burst use the same parameters, as one large batch does.
    """

    delays = NO_DELAYS

    def __init__(
        self, config: RunConfig, parts: tuple[tuple[int, int], ...], *, push_every: int = 1, pull_every: int = 1,
        rounds: bool = False, together: bool = False, compression: Compression | None = None,
    ) -> None:  # fmt: skip
        self.config, self.parts, self.push_every, self.pull_every = config, parts, push_every, pull_every
        self.rounds, self.together = rounds, together
        self.cursor, self.sender = ShardCursor(config), Sender(compression)
        self.clock = 0  # Pushes so far.
        self.values: Floats = config.start
        self.got: dict[int, PullReply] = {}  # Last reply of each server, by number.
        # Clocks that the servers have named, by number, while the worker joins late.
        self.join_clocks: dict[int, int] | None = None
        self.awaits = False  # Whether the worker waits for parameters.
        self.stopping = False
        self.ended = False
        self._own = 0  # Pushes since the last pull.

    @property
    def epoch(self) -> int:
        """The epoch that the worker is in, if all workers are equally fast."""
        return self.cursor.epoch

    def react(self, event: Event) -> Iterable[Action]:
        """React to an event with actions."""
        if isinstance(event, Started):
            yield Send(COORDINATOR, Ready())
        elif isinstance(event, Delivered):
            yield from self._delivered(event.sender, event.body)
        elif isinstance(event, Trained):
            yield from self._trained(event)
        elif isinstance(event, PeerJoined) and is_server(event.peer):
            yield from self._repeat_request(number_of(event.peer))

    def _delivered(self, sender: str, body: Body) -> Iterator[Action]:
        if isinstance(body, Begin) and not self.ended:  # Stop may arrive before Begin.
            self.cursor.take(body)
            if body.clock < 0:
                self.join_clocks = {}
                for number in range(len(self.parts)):
                    yield Send(server(number), JoinRequest())
            else:
                yield from self._pull()
        elif isinstance(body, Assign):
            self.cursor.take(body)
        elif isinstance(body, JoinReply) and self.join_clocks is not None:
            self.join_clocks[number_of(sender)] = body.clock
            if len(self.join_clocks) == len(self.parts):
                self.clock, self.join_clocks = max(self.join_clocks.values()), None
                yield from self._pull()
        elif isinstance(body, PullReply) and self.awaits and body.clock == self.clock:
            self.got[number_of(sender)] = body
            if len(self.got) == len(self.parts):
                yield from self._pulled()
        elif isinstance(body, Stop) and not self.ended:
            self.stopping = True
            if self.awaits or self.join_clocks is not None or not self.cursor.shards:
                yield from self._leave()

    def _repeat_request(self, number: int) -> Iterator[Action]:
        """Repeat an unanswered request to a restarted server, which may have lost it."""
        if self.join_clocks is not None and number not in self.join_clocks:
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
        reply = self.got[0]
        progress = reply.progress + self._own * self.push_every * reply.members
        return self.cursor.burst(self.values, self._terms(), progress, reply.members, self.together)

    def _terms(self) -> int:
        """Return the number of terms of the next burst, and 0 if no terms are left."""
        limit = self.config.quota - self.clock * self.push_every if self.rounds else self._left()
        return max(0, min(self.push_every, limit))

    def _left(self) -> int:
        return self.push_every if self.config.goal is None else self.config.goal - self.cursor.done

    def _trained(self, event: Trained) -> Iterator[Action]:
        moved = self.sender(change(self.values, event.values))
        for number, (start, stop) in enumerate(self.parts):
            read, piece = self.got[number].version, part(moved, start, stop)
            yield Send(server(number), Push(piece, self.clock, read, self._own, event.terms, event.samples, event.step))
        self.clock += 1
        self._own += 1
        yield from self.cursor.trained(event, self.clock)
        if self.stopping or self._terms() == 0:
            yield from self._leave()
        elif self._own >= self.pull_every:
            yield from self._pull()
        else:
            self.values = frozen(event.values)
            yield self._burst()

    def _leave(self) -> Iterator[Action]:
        self.ended, self.awaits, self.join_clocks = True, False, None
        yield from self.cursor.report()
        for number in range(len(self.parts)):
            yield Send(server(number), Leave())
        yield Send(COORDINATOR, Stopped(self._counts()))

    def _counts(self) -> dict[str, Any]:
        return {"terms": self.cursor.done, "clock": self.clock}
