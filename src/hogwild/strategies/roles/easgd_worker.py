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
    TermsReply,
    TimeSpent,
    is_server,
    number_of,
    server,
)  # fmt: skip
from hogwild.messaging.node import NO_DELAYS
from hogwild.messaging.protocol import Action, Delivered, Event, PeerJoined, Send, Started, Trained
from hogwild.strategies.roles.worker_progress import ShardCursor


class EASGDWorker:
    """Elastic-averaging worker (EASGD, Zhang et al. 2015, arXiv 1412.6651).

    After ``period`` terms the worker pulls the centre from the servers. When the centre has arrived, worker and centre
    move towards each other, each by the fraction ``share`` of their difference. Meanwhile the worker trains up to
    ``run_ahead`` bursts; with 0 it waits.
    """

    delays = NO_DELAYS

    def __init__(
        self, config: RunConfig, parts: tuple[tuple[int, int], ...], period: int, share: float,
        compression: Compression | None = None, run_ahead: int = 0,
    ) -> None:  # fmt: skip
        self.config, self.parts, self.period, self.share, self.run_ahead = config, parts, period, share, run_ahead
        self.cursor, self.sender = ShardCursor(config, shared=True), Sender(compression)
        self.clock = 0  # Elastic steps so far.
        self.values: Floats | None = None  # The worker's own parameters; None before its first pull of the centre.
        self.pulling = False  # Whether a pull is on its way.
        self.got: dict[int, PullReply] = {}  # Replies to the last pull so far, by server.
        self.reply = PullReply(config.start, 0, 0, 0, 1)  # Last complete reply of the first server.
        self.ahead = 0  # Bursts since the last pull was sent.
        self.terms = self.samples = 0  # Terms and samples trained since the last elastic step.
        self.step = 0.0  # Step size of the last burst.
        self.training = self.stopping = self.ended = False

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
            self.training, self.values = False, frozen(event.values)
            self.terms, self.samples, self.step = self.terms + event.terms, self.samples + event.samples, event.step
            self.ahead += 1
            yield from self.cursor.trained(event, self.clock)
            yield from self._continue()
        elif isinstance(event, PeerJoined) and is_server(event.peer):
            number = number_of(event.peer)
            if self.pulling and number not in self.got:
                yield Send(event.peer, Pull(self.clock))

    def _delivered(self, sender: str, body: Body) -> Iterator[Action]:
        if isinstance(body, Begin) and not self.ended:  # Stop may arrive before Begin.
            self.cursor.take(body)
            yield from self._pull()
        elif isinstance(body, Assign | StepScale | TimeSpent | TermsReply):
            self.cursor.take(body)
            if isinstance(body, TermsReply) and self.values is not None and not self.training and not self.ended:
                yield from self._continue()
        elif isinstance(body, PullReply) and self.pulling and body.clock == self.clock:
            self.got[number_of(sender)] = body
            if len(self.got) == len(self.parts) and not self.training:
                yield from self._continue()
        elif isinstance(body, Stop) and not self.ended:
            self.stopping = True
            if self.values is None:
                yield from self._leave()
            elif not self.training:
                yield from self._continue()

    def _pull(self) -> Iterator[Action]:
        self.pulling, self.got, self.ahead = True, {}, 0
        for number in range(len(self.parts)):
            yield Send(server(number), Pull(self.clock))

    def _continue(self) -> Iterator[Action]:
        """Take the elastic step if the centre has arrived, pull it again after a burst, and train the next burst."""
        if self.pulling and len(self.got) == len(self.parts):
            yield from self._pulled()
        if self.terms and not self.pulling:
            yield from self._pull()
        terms = self.cursor.next_terms(self.period)
        if self.stopping:
            if not self.pulling:  # Otherwise the worker leaves after its last elastic step.
                yield from self._leave()
        elif terms == 0:
            yield from self.cursor.wait()
        elif not self.pulling or self.ahead < self.run_ahead:
            assert self.values is not None
            self.training = True
            yield self.cursor.burst(self.values, terms, self._progress(), self.reply.members)

    def _progress(self) -> int:
        """Return the terms of all workers that precede the next burst, by the last reply of the first server."""
        return self.reply.progress + self.terms * self.reply.members

    def _pulled(self) -> Iterator[Action]:
        self.pulling, self.reply = False, self.got[0]
        pieces = [self.got[number].values for number in range(len(self.parts))]
        centre = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        if self.values is None:
            self.values = frozen(centre)
        elif self.terms:
            yield from self._elastic_step(centre)

    def _elastic_step(self, centre: Floats) -> Iterator[Action]:
        assert self.values is not None
        pull = self.sender(frozen((self.share * (self.values - centre)).astype(centre.dtype)))
        away = pull.dense() if isinstance(pull, SparseDelta) else pull
        self.values = frozen((self.values - away).astype(centre.dtype))
        for number, (start, stop) in enumerate(self.parts):
            piece, read = part(pull, start, stop), self.got[number].version
            yield Send(server(number), Push(piece, self.clock, read, 0, self.terms, self.samples, self.step))
        self.clock += 1
        self.terms = self.samples = 0

    def _leave(self) -> Iterator[Action]:
        self.ended, self.pulling = True, False
        yield from self.cursor.report()
        for number in range(len(self.parts)):
            yield Send(server(number), Leave())
        yield Send(COORDINATOR, Stopped({"terms": self.cursor.done, "clock": self.clock}))
