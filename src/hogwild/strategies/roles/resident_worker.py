"""Parameter-server worker whose trainer keeps the parameters: it pulls what other workers have changed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hogwild.messaging.deltas import Floats, Vector, add, frozen, joined, total
from hogwild.messaging.job import RunConfig
from hogwild.messaging.messages import Begin, ChangesReply, JoinRequest, Pull, PullChanges, PullReply, server
from hogwild.messaging.protocol import Action, Send, Trained
from hogwild.strategies.roles.parameter_server_worker import ParameterServerWorker


class ResidentWorker(ParameterServerWorker):
    """Parameter-server worker with a trainer that keeps its parameters between bursts.

    The worker begins from the parameters of the configuration, and pulls the changes of other workers, which the
    trainer adds to its parameters before the next burst. When it joins late, and after a restart of a server, it pulls
    all parameters and waits for them.

    Where trainers hold some changes back, the worker pushes these before it leaves, by a burst without terms.
    """

    def __init__(
        self, config: RunConfig, parts: tuple[tuple[int, int], ...], *, push_every: int, run_ahead: int = 0,
        rounds: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(config, parts, push_every=push_every, run_ahead=run_ahead, rounds=rounds)
        self.start: Floats | None = None  # Parameters from which the next burst begins; None for the trainer's own.
        self.received: Vector | None = None  # Changes of other workers that the trainer does not have yet.
        self.whole = True  # Whether the pull on its way is one of all parameters.
        self.pushed_all = True  # Whether the trainer holds no changes back.

    def _begin(self, order: Begin | None) -> Iterator[Action]:
        if order is None or (self.rounds and self._terms() == 0):
            yield from super()._begin(order)
            return
        self.start, self.whole = self.config.start, False
        known = ChangesReply(None, self.clock, 0, order.progress, max(1, len(order.members)))
        self.got = dict.fromkeys(range(len(self.parts)), known)
        yield from self._continue()

    def _server_restarted(self, number: int) -> Iterator[Action]:
        if self.join_clocks is not None and number not in self.join_clocks:
            yield Send(server(number), JoinRequest())
        elif self.pull_clock is None:
            self.outdated = True
        else:
            yield from self._pull_all()

    def _pull(self) -> Iterator[Action]:
        if self.outdated or not self.got:
            yield from self._pull_all()
            return
        self._expect(whole=False)
        for number in range(len(self.parts)):
            yield Send(server(number), PullChanges(self.clock, self.got[number].version))

    def _pull_all(self) -> Iterator[Action]:
        self._expect(whole=True)
        for number in range(len(self.parts)):
            yield Send(server(number), Pull(self.clock))

    def _expect(self, whole: bool) -> None:
        self.pull_clock, self.replies, self.unseen, self.outdated, self.whole = self.clock, {}, [], False, whole

    def _is_expected(self, body: PullReply | ChangesReply) -> bool:
        # The reply to an earlier pull may have the same clock, but is not one of all parameters.
        return body.clock == self.pull_clock and (isinstance(body, PullReply) or not self.whole)

    def _runs_ahead(self) -> bool:
        return not self.whole and super()._runs_ahead()

    def _adopt(self) -> Iterator[Action]:
        replies = [self.replies[number] for number in range(len(self.parts))]
        if all(isinstance(reply, PullReply) for reply in replies):
            values = np.concatenate([reply.values for reply in replies if isinstance(reply, PullReply)])
            for vector in self.unseen:
                add(values, vector)
            self.start, self.received = frozen(values), None
        elif any(isinstance(reply, PullReply) for reply in replies):
            yield from self._pull_all()  # One of the servers no longer has all changes.
            return
        else:
            self._receive(joined([reply.change for reply in replies if isinstance(reply, ChangesReply)], self.parts))
        self.got, self._own = self.replies, len(self.unseen)
        self.pull_clock, self.replies, self.unseen = None, {}, []

    def _receive(self, change: Vector | None) -> None:
        """Note changes of other workers for the next burst."""
        if change is None:
            return
        if self.start is not None:
            values = self.start.copy()
            add(values, change)
            self.start = frozen(values)
        else:
            self.received = change if self.received is None else total([self.received, change])

    def _burst(self, terms: int) -> Action:
        reply = self.got[0]
        progress = reply.progress + self._own * self.push_every * reply.members
        start, received, self.start, self.received = self.start, self.received, None, None
        self.pushed_all = terms == 0 or not self.config.holds_back
        return self.cursor.burst(start, terms, progress, reply.members, received=received)

    def _leave(self) -> Iterator[Action]:
        if self.pushed_all:
            yield from super()._leave()
        else:
            self.stopping, self.awaits = True, False
            yield self._burst(0)

    def _moved(self, event: Trained) -> Vector:
        assert event.change is not None
        return event.change
