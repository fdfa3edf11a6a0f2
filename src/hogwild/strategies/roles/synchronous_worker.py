"""Synchronous worker without servers: it trains, sends, waits for its peers, and mixes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hogwild.messaging.deltas import checked
from hogwild.messaging.job import RunConfig
from hogwild.messaging.messages import (
    COORDINATOR,
    Assign,
    Begin,
    Body,
    GossipPush,
    ParametersReply,
    ParametersRequest,
    Ready,
    StepScale,
    Stop,
    Stopped,
    TimeSpent,
    ViewChange,
    ViewState,
    number_of,
    worker,
)  # fmt: skip
from hogwild.messaging.node import NO_DELAYS
from hogwild.messaging.protocol import Action, Delivered, Event, Send, Started, Trained
from hogwild.strategies.roles.exchanges import Exchange
from hogwild.strategies.roles.worker_progress import PolyakAverage, ShardCursor


class SynchronousWorker:
    """Synchronous worker that holds the parameters.

    The worker trains ``period`` terms a round, until all workers together have trained the terms of the run. After a
    crash the remaining workers train more rounds: the remaining terms are divided among the members of the membership
    view.

    The coordinator sets the membership view. When it changes, the worker reports its state after its burst, and waits
    for the Begin of the new view. The worker ignores messages of an earlier view, and holds back messages of a later
    view.
    """

    delays = NO_DELAYS

    def __init__(self, me: int, config: RunConfig, period: int, exchange: Exchange) -> None:
        self.me, self.config, self.period, self.exchange = me, config, period, exchange
        self.cursor, self.iterates = ShardCursor(config), PolyakAverage(config)
        self.clock = 0  # The current round.
        self.view = -1  # The membership view, or -1 before the first.
        self.members = 1  # Number of members of the membership view.
        self.base = 0, 0  # Round in which the membership view began, and the terms that all had trained by then.
        # Messages by membership view and round, then by sender.
        self.inbox: dict[tuple[int, int], dict[int, GossipPush]] = {}
        self.training = self.waiting = self.stopping = self.ended = False
        # Membership view for which the worker reports its state after its burst.
        self.requested_view: int | None = None
        self.bursts = 0

    @property
    def epoch(self) -> int:
        """The epoch that the worker is in, if all workers are equally fast."""
        return self.cursor.epoch

    @property
    def progress(self) -> int:
        """The number of terms that all workers together have trained."""
        clock, progress = self.base
        return progress + (self.clock - clock) * self.period * self.members

    def react(self, event: Event) -> Iterable[Action]:
        """React to an event with actions."""
        if isinstance(event, Started):
            yield Send(COORDINATOR, Ready())
        elif isinstance(event, Delivered):
            yield from self._delivered(event.sender, event.body)
        elif isinstance(event, Trained):
            yield from self._trained(event)

    def _delivered(self, sender: str, body: Body) -> Iterator[Action]:
        if isinstance(body, GossipPush):
            yield from self._received(number_of(sender), body)
        elif isinstance(body, Begin):
            yield from self._begin(body)
        elif isinstance(body, Assign | StepScale | TimeSpent):
            self.cursor.take(body)
        elif isinstance(body, ViewChange):
            self.requested_view = body.view
            if not self.training:
                yield from self._report_state(body.view)
        elif isinstance(body, ParametersRequest):
            values = self.iterates.best(self.exchange.values)
            yield Send(COORDINATOR, ParametersReply(body.number, values, 0, self.clock))
        elif isinstance(body, Stop) and not self.ended:
            self.stopping = True
            if not self.training:
                self._complete_alone()
                yield from self._end()

    # Rounds.

    def _begin(self, body: Begin) -> Iterator[Action]:
        members = tuple(number_of(name) for name in body.members)
        self.cursor.take(body)
        self.view, self.members, self.clock = body.view, len(members), body.clock
        self.base = body.clock, body.progress
        self.exchange.begin(body.view, members, body.values)
        self.inbox = {key: got for key, got in self.inbox.items() if key[0] >= body.view}
        if not self.ended:
            yield from self._next()

    def _next(self) -> Iterator[Action]:
        terms = self.period
        if self.config.goal is not None:
            left = self.config.quota * self.config.workers - self.progress
            terms = min(terms, -(-left // self.members))
        if terms <= 0:
            yield from self._end()
            return
        self.training = True
        yield self.cursor.burst(self.exchange.values, terms, self.progress, self.members)

    def _trained(self, event: Trained) -> Iterator[Action]:
        self.training, self.waiting = False, True
        self.bursts += 1
        self.exchange.trained(event)
        yield from self.cursor.trained(event, self.clock + 1)
        if self.requested_view is not None:
            yield from self._report_state(self.requested_view)
        if self.stopping:
            self._complete_alone()
            yield from self._end()
        elif self.waiting:
            for target in self.exchange.targets(self.clock):
                yield Send(worker(target), self.exchange.message(self.clock))
            yield from self._mix()

    def _received(self, sender: int, body: GossipPush) -> Iterator[Action]:
        if body.view >= self.view and not self.ended:
            checked(body.vector, self.config.size)
            self.inbox.setdefault((body.view, body.clock), {})[sender] = body
            yield from self._mix()

    def _mix(self) -> Iterator[Action]:
        """Mix and begin the next round, if the messages of all sources have arrived."""
        got = self.inbox.get((self.view, self.clock), {})
        if not self.waiting or any(source not in got for source in self.exchange.sources(self.clock)):
            return
        self.exchange.mix(self.clock, got)
        self.inbox.pop((self.view, self.clock), None)
        self._complete_round()
        yield from self._next()

    def _complete_round(self) -> None:
        self.waiting = False
        self.clock += 1
        self.iterates.add(self.exchange.values, self.progress)

    def _complete_alone(self) -> None:
        if self.waiting:
            self.exchange.complete_alone()
            self._complete_round()

    # Changes of the membership view, and the end of the worker.

    def _report_state(self, view: int) -> Iterator[Action]:
        self.requested_view = None
        self._complete_alone()
        yield from self.cursor.report()
        values = None if self.view < 0 else self.exchange.values
        yield Send(COORDINATOR, ViewState(view, self.clock, self.progress, values, self.exchange.weight))

    def _end(self) -> Iterator[Action]:
        self.ended = True
        self.inbox = {}
        yield from self.cursor.report()
        delays = {worker(self.me): {0: self.bursts}} if self.bursts else {}
        yield Send(COORDINATOR, Stopped({"terms": self.cursor.done, "clock": self.clock, "delays": delays}))
