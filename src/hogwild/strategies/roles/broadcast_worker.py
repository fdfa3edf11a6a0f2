"""Worker that holds the parameters and sends each delta to all others, without waiting for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from hogwild.messaging.compression import Compression, Sender
from hogwild.messaging.deltas import Floats, add, change, checked, frozen
from hogwild.messaging.job import RunConfig
from hogwild.messaging.messages import (
    COORDINATOR,
    Assign,
    Begin,
    Body,
    GossipPush,
    Leave,
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
from hogwild.strategies.roles.worker_progress import PolyakAverage, ShardCursor


class BroadcastWorker:
    """Asynchronous all-to-all worker.

    The worker trains ``period`` terms, adds the delta to its parameters, and sends it to all other workers. They add it
    when it arrives. Replicas stay equal only if each gets every delta. So after a join or a crash the coordinator forms
    a new membership view, and all workers restart from the mean of their parameters. At the end each worker tells the
    others that it sends no more deltas.
    """

    def __init__(
        self, me: int, config: RunConfig, period: int, mean: bool = False, compression: Compression | None = None
    ) -> None:
        self.me, self.config, self.period, self.mean, self.sender = me, config, period, mean, Sender(compression)
        self.cursor, self.iterates = ShardCursor(config, shared=True), PolyakAverage(config)
        self.clock = 0  # Bursts that the worker has completed.
        self.view = -1  # The membership view, or -1 before the first.
        self.members: tuple[int, ...] = ()
        self.values: Floats = config.start.copy()
        self.before: Floats = config.start  # Parameters at the start of the current burst.
        # Deltas added in this membership view, now and at the start of the current burst.
        self.version = self.seen = 0
        self.progress = 0  # Terms of all workers whose deltas are added.
        self.early: list[tuple[str, GossipPush]] = []  # Deltas of a membership view that this worker has not begun.
        self.training = self.paused = self.stopping = self.ended = self.stop_reported = False
        # Membership view for which the worker reports its state after its burst.
        self.requested_view: int | None = None
        self.here: set[int] = set()  # Other workers that are running.
        self.awaited: set[int] = set()  # Members whose Leave message the worker waits for.
        self.left: set[int] = set()  # Workers whose Leave message has arrived.
        self.delays: dict[str, Counter[int]] = {}  # Number of deltas by staleness, for each sender.

    @property
    def epoch(self) -> int:
        """The epoch that the worker is in, if all workers are equally fast."""
        return self.cursor.epoch

    def react(self, event: Event) -> Iterable[Action]:
        """React to an event with actions."""
        if isinstance(event, Started):
            self.here = {number_of(name) for name in event.here if is_worker(name)}
            yield Send(COORDINATOR, Ready())
        elif isinstance(event, Delivered):
            yield from self._delivered(event.sender, event.body)
        elif isinstance(event, Trained):
            yield from self._trained(event)
        elif isinstance(event, PeerLost) and is_worker(event.peer):
            self.here.discard(number_of(event.peer))
            self.awaited.discard(number_of(event.peer))
            yield from self._report_stopped()
        elif isinstance(event, PeerJoined) and is_worker(event.peer):
            self.here.add(number_of(event.peer))
            self.left.discard(number_of(event.peer))

    def _delivered(self, sender: str, body: Body) -> Iterator[Action]:
        if isinstance(body, GossipPush):
            self._received(sender, body)
        elif isinstance(body, Begin):
            yield from self._begin(body)
        elif isinstance(body, Assign | StepScale | TimeSpent | TermsReply):
            self.cursor.take(body)
            if isinstance(body, TermsReply) and not (self.training or self.paused or self.ended):
                yield from self._next()
        elif isinstance(body, ViewChange):
            self.requested_view = body.view
            if not self.training:
                yield from self._report_state()
        elif isinstance(body, ParametersRequest):
            yield Send(COORDINATOR, ParametersReply(body.number, self.iterates.best(self.values), 0, self.clock))
        elif isinstance(body, Leave):
            self.left.add(number_of(sender))
            yield from self._report_stopped()
        elif isinstance(body, Stop) and not self.stopping:
            self.stopping = True
            if not self.training:
                yield from self._end()

    def _begin(self, body: Begin) -> Iterator[Action]:
        self.cursor.take(body)
        self.view, self.members = body.view, tuple(number_of(name) for name in body.members)
        self.values = (self.config.start if body.values is None else body.values).copy()
        self.version, self.progress, self.clock = 0, body.progress, max(self.clock, body.clock)
        self.awaited = self.here.intersection(self.members)
        self.paused = False
        early, self.early = self.early, []
        for sender, push in early:
            self._received(sender, push)
        yield from self._leave() if self.ended else self._next()

    # Bursts.

    def _next(self) -> Iterator[Action]:
        if self.stopping:
            yield from self._end()
            return
        terms = self.cursor.next_terms(self.period)
        if terms == 0:
            yield from self.cursor.wait()
            return
        self.training, self.seen = True, self.version
        self.before = frozen(self.values.copy())
        yield self.cursor.burst(self.before, terms, self.progress, len(self.members))

    def _trained(self, event: Trained) -> Iterator[Action]:
        self.training = False
        self.clock += 1
        yield from self.cursor.trained(event, self.clock)
        push = GossipPush(self.sender(change(self.before, event.values)), self.clock, self.view, event.terms, self.seen)
        if self.requested_view is not None:
            # No other worker gets this delta any more. It is scaled by the number of members, so that their mean is the
            # same as if all had added it.
            add(self.values, push.vector, self._scale() * (1 + len(self.here.intersection(self.members))))
            self.progress += event.terms
            yield from self._report_state()
        else:
            exact = self.version == self.seen and self.sender.compression is None and self._scale() == 1.0
            self._add(worker(self.me), push)
            if exact:
                self.values = event.values.copy()
            for member in self.members:
                if member in self.here:
                    yield Send(worker(member), push)
        if self.stopping or not self.paused:
            yield from self._next()

    # Deltas.

    def _scale(self) -> float:
        return 1 / len(self.members) if self.mean else 1.0

    def _received(self, sender: str, push: GossipPush) -> None:
        checked(push.vector, self.config.size)
        if push.view == self.view:
            self._add(sender, push)
        elif push.view > self.view:
            self.early.append((sender, push))

    def _add(self, sender: str, push: GossipPush) -> None:
        self.delays.setdefault(sender, Counter())[max(0, self.version - push.seen)] += 1
        add(self.values, push.vector, self._scale())
        self.version += 1
        self.progress += round(push.weight)
        self.iterates.add(self.values, self.progress)

    # Changes of the membership view, and the end of the worker.

    def _report_state(self) -> Iterator[Action]:
        assert self.requested_view is not None
        view, self.requested_view, self.paused = self.requested_view, None, True
        yield from self.cursor.report()
        values = None if self.view < 0 else frozen(self.values.copy())
        yield Send(COORDINATOR, ViewState(view, self.clock, self.progress, values))

    def _end(self) -> Iterator[Action]:
        self.ended = True
        yield from self.cursor.report()
        yield from self._leave()

    def _leave(self) -> Iterator[Action]:
        # The message goes to all running workers, even before the first Begin. Some of them may still count the
        # previous incarnation of this worker as a member.
        for other in sorted(self.here):
            yield Send(worker(other), Leave())
        yield from self._report_stopped()

    def _report_stopped(self) -> Iterator[Action]:
        """Report the end to the coordinator, once all deltas of the other workers have arrived."""
        if self.ended and not self.stop_reported and self.awaited <= self.left:
            self.stop_reported = True
            delays = {name: dict(counts) for name, counts in self.delays.items()}
            yield Send(COORDINATOR, Stopped({"terms": self.cursor.done, "clock": self.clock, "delays": delays}))
