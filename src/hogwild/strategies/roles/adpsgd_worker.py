"""A worker that has the parameters itself and meets one neighbour at a time half way, waiting for nobody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from hogwild.messaging.actions import Action, Send
from hogwild.messaging.compression import Compression
from hogwild.messaging.deltas import Floats, Vector, add, checked, frozen
from hogwild.messaging.events import Delivered, Event, PeerJoined, PeerLost, Started, Trained
from hogwild.messaging.messages import (
    COORDINATOR,
    Assign,
    Begin,
    Body,
    GossipPush,
    GossipReply,
    ParametersReply,
    ParametersRequest,
    Ready,
    Stop,
    Stopped,
    ViewChange,
    ViewState,
    number_of,
    worker,
)  # fmt: skip
from hogwild.messaging.run_config import RunConfig
from hogwild.strategies.roles.iterate_average import IterateAverage
from hogwild.strategies.roles.mixing import MixingPlan
from hogwild.strategies.roles.shard_cursor import ShardCursor

DRIFT = 8  # bursts after which a partner that has not answered is waited for


class ADPSGDWorker:
    """Trains ``period`` terms, then sends its parameters to a neighbour at random, who takes half of the difference and
    sends the other half back (AD-PSGD, Lian et al. 2018, arXiv 1710.06952). So the mean of all is kept.

    It trains on meanwhile: what comes is mixed in, and the change of a burst is added when it ends. Of a partner it has
    not heard back from it asks nothing more, and asks nobody else; if that one dies, it is free again. Only when that
    takes very long, as where partners are seldom given a core, it waits: or it would train alone.
    """

    def __init__(
        self, me: int, config: RunConfig, plan: MixingPlan, period: int, compression: Compression | None = None
    ) -> None:
        self.me, self.config, self.period, self.compression = me, config, period, compression
        self.near = plan.near
        self.labour, self.iterates = ShardCursor(config), IterateAverage(config)
        self.clock = 0  # bursts
        self.view = -1
        self.members: set[int] = set()
        self.absent: set[int] = set()  # who is not there
        self.values: Floats = config.start.copy()
        self.before: Floats = config.start  # where the burst that is going on began
        self.mixed = 0  # how often something was mixed in since then
        self.progress = 0.0  # how far all are, as far as it knows: mixed as the parameters are
        self.partner: int | None = None
        self.early: list[tuple[str, GossipPush]] = []  # who wanted to meet before it had begun
        self.training = self.waiting = self.halting = self.ended = False
        self.alone = 0  # bursts since it asked its partner
        self.delays: Counter[int] = Counter()

    @property
    def epoch(self) -> int:
        """In which walk over the data it is."""
        return self.labour.epoch

    def react(self, event: Event) -> Iterable[Action]:
        """React to what happened."""
        if isinstance(event, Started):
            # Nobody tells of those who were gone before it came.
            self.absent = {k for k in range(self.config.workers) if k != self.me and worker(k) not in event.here}
            yield Send(COORDINATOR, Ready())
        elif isinstance(event, Delivered):
            yield from self._heard(event.sender, event.body)
        elif isinstance(event, Trained):
            yield from self._trained(event)
        elif isinstance(event, PeerLost) and event.peer.startswith("worker"):
            yield from self._lost(number_of(event.peer))
        elif isinstance(event, PeerJoined) and event.peer.startswith("worker"):
            self.absent.discard(number_of(event.peer))
            self.members = self.members | {number_of(event.peer)}

    def _heard(self, sender: str, body: Body) -> Iterator[Action]:
        if isinstance(body, GossipPush):
            yield from self._met(sender, body)
        elif isinstance(body, GossipReply):
            yield from self._answered(number_of(sender), body)
        elif isinstance(body, Begin):
            yield from self._begin(body)
        elif isinstance(body, Assign):
            self.labour.take(body)
        elif isinstance(body, ViewChange):  # it stops for nobody, but others may need its parameters
            yield from self.labour.report()
            values = None if self.view < 0 else frozen(self.values.copy())
            yield Send(COORDINATOR, ViewState(body.view, self.clock, round(self.progress), values))
        elif isinstance(body, ParametersRequest):
            yield Send(COORDINATOR, ParametersReply(body.number, self.iterates.best(self.values), 0, self.clock))
        elif isinstance(body, Stop) and not self.halting:
            self.halting = True
            if not self.training:
                self.waiting = False
                yield from self._end()

    def _begin(self, body: Begin) -> Iterator[Action]:
        self.labour.take(body)
        new, self.view = self.view < 0, body.view
        if not new:
            return  # whom it meets it knows from who is there
        # That may have been long on its way: some who were there then are not now, and others are.
        self.members = self.members | {number_of(name) for name in body.members} - self.absent
        self.values = (self.config.start if body.values is None else body.values).copy()
        self.progress = float(body.progress)
        early, self.early = self.early, []
        for sender, mix in early:
            yield from self._met(sender, mix)
        if not self.ended:  # it may have been told to end before it began
            yield from self._next()

    # Bursts

    def _next(self) -> Iterator[Action]:
        left = self.period if self.config.goal is None else self.config.goal - self.labour.done
        if self.halting or left <= 0:
            yield from self._end()
            return
        self.training, self.mixed = True, 0
        self.before = frozen(self.values.copy())
        yield self.labour.burst(self.before, min(self.period, left), round(self.progress), max(1, len(self.members)))

    def _trained(self, event: Trained) -> Iterator[Action]:
        self.training = False
        self.delays[self.mixed] += 1
        if self.mixed:
            self.values += event.values - self.before
        else:
            self.values = event.values.copy()
        self.clock += 1
        self.progress += event.terms * max(1, len(self.members))
        self.iterates.add(self.values, round(self.progress))
        yield from self.labour.trained(event, self.clock)
        if not self.halting:
            yield from self._meet()
        self.alone += 1
        self.waiting = self.partner is not None and self.alone > DRIFT and not self.halting
        if not self.waiting:
            yield from self._next()

    # Meeting others

    def _meet(self) -> Iterator[Action]:
        near = self.near(self.me, tuple(sorted(self.members | {self.me})), self.clock)
        if self.partner is None and near:
            self.partner, self.alone = near[np.random.default_rng([self.me, self.clock]).integers(len(near))], 0
            vector = self._sent(frozen(self.values.copy()))
            yield Send(worker(self.partner), GossipPush(vector, self.clock, self.view, seen=round(self.progress)))

    def _met(self, sender: str, body: GossipPush) -> Iterator[Action]:
        """Take half of the difference, and give the other half back."""
        if self.ended:
            yield Send(sender, GossipReply(None, body.clock))
        elif self.view < 0:
            self.early.append((sender, body))
        else:
            half = frozen((np.float32(0.5) * (checked(body.vector, self.config.size) - self.values)).astype(np.float32))
            moved = self._sent(half)
            apart = (body.seen - round(self.progress)) // 2
            self._mix(moved, 1.0, apart)
            yield Send(sender, GossipReply(moved, body.clock, -apart))

    def _answered(self, sender: int, body: GossipReply) -> Iterator[Action]:
        if sender != self.partner:
            return
        self.partner = None
        if body.vector is not None:
            self._mix(checked(body.vector, self.config.size), -1.0, body.seen)
        yield from self._free()

    def _mix(self, vector: Vector, times: float, progress: int) -> None:
        add(self.values, vector, times)
        self.progress += progress
        self.mixed += 1

    def _lost(self, peer: int) -> Iterator[Action]:
        self.absent.add(peer)
        self.members = self.members - {peer}
        self.early = [(sender, mix) for sender, mix in self.early if number_of(sender) != peer]
        if peer == self.partner:
            self.partner = None
            yield from self._free()

    def _free(self) -> Iterator[Action]:
        """Its partner has answered, or never will."""
        if self.waiting:
            self.waiting = False
            yield from self._next()
        else:
            yield from self._halted()

    def _sent(self, vector: Floats) -> Vector:
        return vector if self.compression is None else self.compression(vector)

    # The end

    def _end(self) -> Iterator[Action]:
        self.ended = True
        yield from self.labour.report()
        for sender, mix in self.early:
            yield Send(sender, GossipReply(None, mix.clock))
        yield from self._halted()

    def _halted(self) -> Iterator[Action]:
        """Say so when nothing is on its way any more that belongs to its parameters."""
        if self.ended and self.partner is None:
            delays = {worker(self.me): dict(self.delays)} if self.delays else {}
            yield Send(COORDINATOR, Stopped({"terms": self.labour.done, "clock": self.clock, "delays": delays}))
