"""Worker of asynchronous gossip (AD-PSGD), which averages its parameters with one neighbour at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from hogwild.messaging.compression import Compression
from hogwild.messaging.deltas import Floats, Vector, add, checked, frozen
from hogwild.messaging.job import RunConfig
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
    StepScale,
    Stop,
    Stopped,
    TermsReply,
    TimeSpent,
    ViewChange,
    ViewState,
    is_worker,
    number_of,
    worker,
)  # fmt: skip
from hogwild.messaging.protocol import Action, Delivered, Event, PeerJoined, PeerLost, Send, Started, Trained
from hogwild.strategies.roles.exchanges import MixingPlan
from hogwild.strategies.roles.worker_progress import PolyakAverage, ShardCursor

MAX_UNANSWERED_BURSTS = 8  # Bursts without a reply of the partner, after which the worker waits for it.


class ADPSGDWorker:
    """AD-PSGD worker (Lian et al. 2018, arXiv 1710.06952).

    After each burst of ``period`` terms the worker sends its parameters to a random neighbour, its partner. The partner
    adds half of the difference, and replies with that half, which the worker subtracts. So the mean over all workers is
    preserved.

    The worker trains while it waits for the reply. It mixes messages that arrive during a burst at once, and adds the
    delta of the burst at its end. It sends to no other neighbour until its partner has replied or crashed. After more
    than ``MAX_UNANSWERED_BURSTS`` bursts without a reply the worker waits. Otherwise a worker whose partners seldom get
    a core would train without averaging.
    """

    def __init__(
        self, me: int, config: RunConfig, plan: MixingPlan, period: int, compression: Compression | None = None
    ) -> None:
        self.me, self.config, self.period, self.compression = me, config, period, compression
        self.neighbours = plan.neighbours
        self.cursor, self.iterates = ShardCursor(config, shared=True), PolyakAverage(config)
        self.clock = 0  # Bursts that the worker has completed.
        self.view = -1  # The membership view, or -1 before the first.
        self.members: set[int] = set()
        self.absent: set[int] = set()  # Workers that are not running.
        self.values: Floats = config.start.copy()
        self.before: Floats = config.start  # Parameters at the start of the current burst.
        self.mixed = 0  # Vectors mixed in since the start of the current burst.
        # The worker's estimate of the terms trained by all workers. Neighbours average it like the parameters.
        self.progress = 0.0
        self.partner: int | None = None
        self.early: list[tuple[str, GossipPush]] = []  # Messages that arrived before the worker had begun.
        self.training = self.waiting = self.stopping = self.ended = False
        self.bursts_since_push = 0  # Bursts since the worker sent to its partner.
        self.delays: Counter[int] = Counter()  # Number of bursts by their staleness, in vectors mixed in.

    @property
    def epoch(self) -> int:
        """The epoch that the worker is in, if all workers are equally fast."""
        return self.cursor.epoch

    def react(self, event: Event) -> Iterable[Action]:
        """React to an event with actions."""
        if isinstance(event, Started):
            # No event reports workers that left before this worker started.
            self.absent = {k for k in range(self.config.workers) if k != self.me and worker(k) not in event.here}
            yield Send(COORDINATOR, Ready())
        elif isinstance(event, Delivered):
            yield from self._delivered(event.sender, event.body)
        elif isinstance(event, Trained):
            yield from self._trained(event)
        elif isinstance(event, PeerLost) and is_worker(event.peer):
            yield from self._lost(number_of(event.peer))
        elif isinstance(event, PeerJoined) and is_worker(event.peer):
            self.absent.discard(number_of(event.peer))
            self.members = self.members | {number_of(event.peer)}

    def _delivered(self, sender: str, body: Body) -> Iterator[Action]:
        if isinstance(body, GossipPush):
            yield from self._pushed(sender, body)
        elif isinstance(body, GossipReply):
            yield from self._replied(number_of(sender), body)
        elif isinstance(body, Begin):
            yield from self._begin(body)
        elif isinstance(body, Assign | StepScale | TimeSpent | TermsReply):
            self.cursor.take(body)
            if isinstance(body, TermsReply) and not (self.training or self.waiting or self.ended):
                yield from self._next()
        elif isinstance(body, ViewChange):
            # The worker does not stop for a new membership view, but new members need its parameters.
            yield from self.cursor.report()
            values = None if self.view < 0 else frozen(self.values.copy())
            yield Send(COORDINATOR, ViewState(body.view, self.clock, round(self.progress), values))
        elif isinstance(body, ParametersRequest):
            yield Send(COORDINATOR, ParametersReply(body.number, self.iterates.best(self.values), 0, self.clock))
        elif isinstance(body, Stop) and not self.stopping:
            self.stopping = True
            if not self.training:
                self.waiting = False
                yield from self._end()

    def _begin(self, body: Begin) -> Iterator[Action]:
        self.cursor.take(body)
        new, self.view = self.view < 0, body.view
        if not new:
            return  # Membership events tell the worker its neighbours.
        # The list may be outdated when it arrives: workers in it may have left since, and others may have joined.
        self.members = self.members | {number_of(name) for name in body.members} - self.absent
        self.values = (self.config.start if body.values is None else body.values).copy()
        self.progress = float(body.progress)
        early, self.early = self.early, []
        for sender, push in early:
            yield from self._pushed(sender, push)
        if not self.ended:  # The worker may have got a Stop before its Begin.
            yield from self._next()

    # Bursts.

    def _next(self) -> Iterator[Action]:
        if self.stopping:
            yield from self._end()
            return
        terms = self.cursor.next_terms(self.period)
        if terms == 0:
            yield from self.cursor.wait()
            return
        self.training, self.mixed = True, 0
        self.before = frozen(self.values.copy())
        yield self.cursor.burst(self.before, terms, round(self.progress), max(1, len(self.members)))

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
        yield from self.cursor.trained(event, self.clock)
        if not self.stopping:
            yield from self._push()
        self.bursts_since_push += 1
        self.waiting = self.partner is not None and self.bursts_since_push > MAX_UNANSWERED_BURSTS and not self.stopping
        if not self.waiting:
            yield from self._next()

    # Averaging with neighbours.

    def _push(self) -> Iterator[Action]:
        neighbours = self.neighbours(self.me, tuple(sorted(self.members | {self.me})), self.clock)
        if self.partner is None and neighbours:
            random = np.random.default_rng([self.me, self.clock])
            self.partner, self.bursts_since_push = neighbours[random.integers(len(neighbours))], 0
            vector = self._compressed(frozen(self.values.copy()))
            yield Send(worker(self.partner), GossipPush(vector, self.clock, self.view, seen=round(self.progress)))

    def _pushed(self, sender: str, body: GossipPush) -> Iterator[Action]:
        """Add half of the difference to a neighbour, and reply with that half."""
        if self.ended:
            yield Send(sender, GossipReply(None, body.clock))
        elif self.view < 0:
            self.early.append((sender, body))
        else:
            half = frozen((np.float32(0.5) * (checked(body.vector, self.config.size) - self.values)).astype(np.float32))
            moved = self._compressed(half)
            apart = (body.seen - round(self.progress)) // 2
            self._mix(moved, 1.0, apart)
            yield Send(sender, GossipReply(moved, body.clock, -apart))

    def _replied(self, sender: int, body: GossipReply) -> Iterator[Action]:
        if sender != self.partner:
            return
        self.partner = None
        if body.vector is not None:
            self._mix(checked(body.vector, self.config.size), -1.0, body.seen)
        yield from self._continue()

    def _mix(self, vector: Vector, times: float, progress: int) -> None:
        add(self.values, vector, times)
        self.progress += progress
        self.mixed += 1

    def _lost(self, peer: int) -> Iterator[Action]:
        self.absent.add(peer)
        self.members = self.members - {peer}
        self.early = [(sender, push) for sender, push in self.early if number_of(sender) != peer]
        if peer == self.partner:
            self.partner = None
            yield from self._continue()

    def _continue(self) -> Iterator[Action]:
        """Continue after the partner has replied or crashed."""
        if self.waiting:
            self.waiting = False
            yield from self._next()
        else:
            yield from self._report_stopped()

    def _compressed(self, vector: Floats) -> Vector:
        return vector if self.compression is None else self.compression(vector)

    # End of the worker.

    def _end(self) -> Iterator[Action]:
        self.ended = True
        yield from self.cursor.report()
        for sender, push in self.early:
            yield Send(sender, GossipReply(None, push.clock))
        yield from self._report_stopped()

    def _report_stopped(self) -> Iterator[Action]:
        """Report the end to the coordinator, once no reply is outstanding that changes the parameters."""
        if self.ended and self.partner is None:
            delays = {worker(self.me): dict(self.delays)} if self.delays else {}
            yield Send(COORDINATOR, Stopped({"terms": self.cursor.done, "clock": self.clock, "delays": delays}))
