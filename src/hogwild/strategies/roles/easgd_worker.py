"""EASGD worker: trains on its own parameters, which are periodically pulled towards a centre."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from hogwild.messaging.compression import Compression, Sender
from hogwild.messaging.deltas import Floats, SparseDelta, frozen, part
from hogwild.messaging.job import RunConfig
from hogwild.messaging.messages import (
    COORDINATOR,
    Assign,
    Begin,
    Body,
    Leave,
    Pull,
    PullReply,
    Push,
    Ready,
    StepScale,
    Stop,
    Stopped,
    is_server,
    number_of,
    server,
)  # fmt: skip
from hogwild.messaging.node import NO_DELAYS
from hogwild.messaging.protocol import Action, Delivered, Event, PeerJoined, Send, Started, Trained
from hogwild.strategies.roles.worker_progress import ShardCursor


class EASGDWorker:
    """Elastic-averaging worker (EASGD, Zhang et al. 2015, arXiv 1412.6651).

    After every ``period`` terms the worker pulls the centre from the servers. Then worker and centre move towards each
    other, each by the fraction ``share`` of their difference.
    """

    delays = NO_DELAYS

    def __init__(
        self, config: RunConfig, parts: tuple[tuple[int, int], ...], period: int, share: float,
        compression: Compression | None = None,
    ) -> None:  # fmt: skip
        self.config, self.parts, self.period, self.share = config, parts, period, share
        self.cursor, self.sender = ShardCursor(config), Sender(compression)
        self.clock = 0
        self.values: Floats | None = None  # The worker's own parameters; None before its first pull of the centre.
        self.last: Trained | None = None  # The last burst, until the centre has moved for it.
        self.got: dict[int, PullReply] = {}
        self.awaits = self.stopping = self.ended = False

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
            self.values, self.last = frozen(event.values), event
            yield from self.cursor.trained(event, self.clock)
            yield from self._pull()
        elif isinstance(event, PeerJoined) and is_server(event.peer):
            number = number_of(event.peer)
            if self.awaits and number not in self.got:
                yield Send(event.peer, Pull(self.clock))

    def _delivered(self, sender: str, body: Body) -> Iterator[Action]:
        if isinstance(body, Begin) and not self.ended:  # Stop may arrive before Begin.
            self.cursor.take(body)
            yield from self._pull()
        elif isinstance(body, Assign | StepScale):
            self.cursor.take(body)
        elif isinstance(body, PullReply) and self.awaits and body.clock == self.clock:
            self.got[number_of(sender)] = body
            if len(self.got) == len(self.parts):
                yield from self._pulled()
        elif isinstance(body, Stop) and not self.ended:
            self.stopping = True
            if self.values is None:
                yield from self._leave()

    def _pull(self) -> Iterator[Action]:
        self.awaits, self.got = True, {}
        for number in range(len(self.parts)):
            yield Send(server(number), Pull(self.clock))

    def _pulled(self) -> Iterator[Action]:
        self.awaits = False
        pieces = [self.got[number].values for number in range(len(self.parts))]
        centre = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        if self.values is None:
            self.values = frozen(centre)
        elif self.last is not None:
            yield from self._elastic_step(centre, self.last)
        left = self.period if self.config.goal is None else self.config.goal - self.cursor.done
        if self.stopping or left <= 0:
            yield from self._leave()
            return
        reply = self.got[0]
        yield self.cursor.burst(self.values, min(self.period, left), reply.progress, reply.members)

    def _elastic_step(self, centre: Floats, last: Trained) -> Iterator[Action]:
        assert self.values is not None
        pull = self.sender(frozen((self.share * (self.values - centre)).astype(centre.dtype)))
        away = pull.dense() if isinstance(pull, SparseDelta) else pull
        self.values = frozen((self.values - away).astype(centre.dtype))
        for number, (start, stop) in enumerate(self.parts):
            piece, read = part(pull, start, stop), self.got[number].version
            yield Send(server(number), Push(piece, self.clock, read, 0, last.terms, last.samples, last.step))
        self.clock += 1
        self.last = None

    def _leave(self) -> Iterator[Action]:
        self.ended, self.awaits = True, False
        yield from self.cursor.report()
        for number in range(len(self.parts)):
            yield Send(server(number), Leave())
        yield Send(COORDINATOR, Stopped({"terms": self.cursor.done, "clock": self.clock}))
