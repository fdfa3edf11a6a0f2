"""A worker that has the parameters itself and tells all others of each change, waiting for nobody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from hogwild.messaging.actions import Action, Send
from hogwild.messaging.compression import Compression, Sender
from hogwild.messaging.deltas import Floats, add, change, checked, frozen
from hogwild.messaging.events import Delivered, Event, PeerJoined, PeerLost, Started, Trained
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
    Stop,
    Stopped,
    ViewChange,
    ViewState,
    number_of,
    worker,
)  # fmt: skip
from hogwild.messaging.run_config import RunConfig
from hogwild.strategies.roles.iterate_average import IterateAverage
from hogwild.strategies.roles.shard_cursor import ShardCursor


class BroadcastWorker:
    """Trains ``period`` terms, adds the change and sends it to all others, who add it as it comes.

    Replicas stay the same only if each has every change, so when somebody comes or goes all begin anew from their mean:
    a new view of the coordinator's. At the end each tells the others that nothing more will come.
    """

    def __init__(
        self, me: int, config: RunConfig, period: int, mean: bool = False, compression: Compression | None = None
    ) -> None:
        self.me, self.config, self.period, self.mean, self.sender = me, config, period, mean, Sender(compression)
        self.labour, self.iterates = ShardCursor(config), IterateAverage(config)
        self.clock = 0  # bursts
        self.view = -1
        self.members: tuple[int, ...] = ()
        self.values: Floats = config.start.copy()
        self.before: Floats = config.start  # where the burst that is going on began
        self.version = self.seen = 0  # changes in this view: that were added, and had been when the burst began
        self.progress = 0
        self.early: list[tuple[str, GossipPush]] = []  # changes of a view that has not begun here
        self.training = self.paused = self.halting = self.ended = self.silent = False
        self.asked: int | None = None  # for which view it is to say where it stands, after its burst
        self.here: set[int] = set()  # other workers that are there
        self.awaited: set[int] = set()  # whose last change has not come
        self.left: set[int] = set()
        self.delays: dict[str, Counter[int]] = {}

    @property
    def epoch(self) -> int:
        """In which walk over the data it is."""
        return self.labour.epoch

    def react(self, event: Event) -> Iterable[Action]:
        """React to what happened."""
        if isinstance(event, Started):
            self.here = {number_of(name) for name in event.here if name.startswith("worker")}
            yield Send(COORDINATOR, Ready())
        elif isinstance(event, Delivered):
            yield from self._heard(event.sender, event.body)
        elif isinstance(event, Trained):
            yield from self._trained(event)
        elif isinstance(event, PeerLost) and event.peer.startswith("worker"):
            self.here.discard(number_of(event.peer))
            self.awaited.discard(number_of(event.peer))
            yield from self._halted()
        elif isinstance(event, PeerJoined) and event.peer.startswith("worker"):
            self.here.add(number_of(event.peer))
            self.left.discard(number_of(event.peer))

    def _heard(self, sender: str, body: Body) -> Iterator[Action]:
        if isinstance(body, GossipPush):
            self._changed(sender, body)
        elif isinstance(body, Begin):
            yield from self._begin(body)
        elif isinstance(body, Assign):
            self.labour.take(body)
        elif isinstance(body, ViewChange):
            self.asked = body.view
            if not self.training:
                yield from self._stand()
        elif isinstance(body, ParametersRequest):
            yield Send(COORDINATOR, ParametersReply(body.number, self.iterates.best(self.values), 0, self.clock))
        elif isinstance(body, Leave):
            self.left.add(number_of(sender))
            yield from self._halted()
        elif isinstance(body, Stop) and not self.halting:
            self.halting = True
            if not self.training:
                yield from self._end()

    def _begin(self, body: Begin) -> Iterator[Action]:
        self.labour.take(body)
        self.view, self.members = body.view, tuple(number_of(name) for name in body.members)
        self.values = (self.config.start if body.values is None else body.values).copy()
        self.version, self.progress, self.clock = 0, body.progress, max(self.clock, body.clock)
        self.awaited = self.here.intersection(self.members)
        self.paused = False
        early, self.early = self.early, []
        for sender, mix in early:
            self._changed(sender, mix)
        yield from self._leave() if self.ended else self._next()

    # Bursts

    def _next(self) -> Iterator[Action]:
        left = self.period if self.config.goal is None else self.config.goal - self.labour.done
        if self.halting or left <= 0:
            yield from self._end()
            return
        self.training, self.seen = True, self.version
        self.before = frozen(self.values.copy())
        yield self.labour.burst(self.before, min(self.period, left), self.progress, len(self.members))

    def _trained(self, event: Trained) -> Iterator[Action]:
        self.training = False
        self.clock += 1
        yield from self.labour.trained(event, self.clock)
        mix = GossipPush(self.sender(change(self.before, event.values)), self.clock, self.view, event.terms, self.seen)
        if self.asked is not None:
            # Nobody else gets it any more: here it counts so much that their mean is what it would have been.
            add(self.values, mix.vector, self._times() * (1 + len(self.here.intersection(self.members))))
            self.progress += event.terms
            yield from self._stand()
        else:
            exact = self.version == self.seen and self.sender.compression is None and self._times() == 1.0
            self._add(worker(self.me), mix)
            if exact:
                self.values = event.values.copy()
            for member in self.members:
                if member in self.here:
                    yield Send(worker(member), mix)
        if self.halting or not self.paused:
            yield from self._next()

    # Changes

    def _times(self) -> float:
        return 1 / len(self.members) if self.mean else 1.0

    def _changed(self, sender: str, mix: GossipPush) -> None:
        checked(mix.vector, self.config.size)
        if mix.view == self.view:
            self._add(sender, mix)
        elif mix.view > self.view:
            self.early.append((sender, mix))

    def _add(self, sender: str, mix: GossipPush) -> None:
        self.delays.setdefault(sender, Counter())[max(0, self.version - mix.seen)] += 1
        add(self.values, mix.vector, self._times())
        self.version += 1
        self.progress += round(mix.weight)
        self.iterates.add(self.values, self.progress)

    # Changes of the view, and the end

    def _stand(self) -> Iterator[Action]:
        assert self.asked is not None
        view, self.asked, self.paused = self.asked, None, True
        yield from self.labour.report()
        values = None if self.view < 0 else frozen(self.values.copy())
        yield Send(COORDINATOR, ViewState(view, self.clock, self.progress, values))

    def _end(self) -> Iterator[Action]:
        self.ended = True
        yield from self.labour.report()
        yield from self._leave()

    def _leave(self) -> Iterator[Action]:
        # To all who are there, if it has begun or not: to some it may be a member since its last life.
        for other in sorted(self.here):
            yield Send(worker(other), Leave())
        yield from self._halted()

    def _halted(self) -> Iterator[Action]:
        """Say so when everything has come that there is."""
        if self.ended and not self.silent and self.awaited <= self.left:
            self.silent = True
            delays = {name: dict(counts) for name, counts in self.delays.items()}
            yield Send(COORDINATOR, Stopped({"terms": self.labour.done, "clock": self.clock, "delays": delays}))
