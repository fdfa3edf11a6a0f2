"""Parameter-server worker: pulls parameters, trains, and pushes deltas, and goes on while a pull is on its way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from hogwild.messaging.compression import Compression, Sender
from hogwild.messaging.deltas import Floats, Vector, add, change, compact, frozen, part
from hogwild.messaging.job import RunConfig
from hogwild.messaging.messages import (
    COORDINATOR,
    Assign,
    Begin,
    Body,
    ChangesReply,
    JoinReply,
    JoinRequest,
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


class ParameterServerWorker:
    """Parameter-server worker (Downpour, Dean et al. 2012).

    The worker trains ``push_every`` terms and pushes the delta to every server. After ``pull_every`` pushes it pulls
    again, and goes on from the parameters that it has, until the reply arrives or it has pushed ``run_ahead`` times
    since. It then continues from the reply, plus the deltas that it has pushed since the pull. With ``run_ahead=0`` it
    waits for every reply. After a restart of a server it pulls again before its next burst.

    With ``rounds`` the worker ends by itself, after the same number of terms as every other worker. Otherwise it
    ends when the coordinator sends Stop. With ``together`` all terms of a burst use the same parameters, as one large
    batch does.
    """

    delays = NO_DELAYS

    def __init__(
        self, config: RunConfig, parts: tuple[tuple[int, int], ...], *, push_every: int = 1, pull_every: int = 1,
        run_ahead: int = 0, rounds: bool = False, together: bool = False, compression: Compression | None = None,
    ) -> None:  # fmt: skip
        self.config, self.parts, self.push_every, self.pull_every = config, parts, push_every, pull_every
        self.run_ahead, self.rounds, self.together = run_ahead, rounds, together
        self.cursor, self.sender = ShardCursor(config, shared=not rounds), Sender(compression)
        self.clock = 0  # Pushes so far.
        self.values: Floats = config.start  # Parameters from which the current or the next burst begins.
        self.got: dict[
            int, PullReply | ChangesReply
        ] = {}  # Replies, by server, that the parameters were last replaced by.
        self.pull_clock: int | None = None  # Clock of the pull that is on its way; None if there is none.
        self.replies: dict[int, PullReply | ChangesReply] = {}  # Replies to that pull so far, by server.
        self.unseen: list[Vector] = []  # Deltas pushed since that pull, which its replies do not contain.
        self.outdated = False  # Whether a server has restarted since its last reply.
        # Clocks that the servers have named, by number, while the worker joins late.
        self.join_clocks: dict[int, int] | None = None
        self.awaits = False  # Whether the worker waits for parameters, or for terms that are left to it.
        self.stopping = False
        self.ended = False
        self._own = 0  # Pushes that the last replies do not contain.

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
            yield from self._server_restarted(number_of(event.peer))

    def _delivered(self, sender: str, body: Body) -> Iterator[Action]:
        if isinstance(body, Begin) and not self.ended:  # Stop may arrive before Begin.
            self.cursor.take(body)
            if body.clock < 0:
                self.join_clocks = {}
                for number in range(len(self.parts)):
                    yield Send(server(number), JoinRequest())
            else:
                yield from self._begin(body)
        elif isinstance(body, Assign | StepScale | TimeSpent | TermsReply):
            self.cursor.take(body)
            if isinstance(body, TermsReply) and self.awaits:
                yield from self._continue()
        elif isinstance(body, JoinReply) and self.join_clocks is not None:
            self.join_clocks[number_of(sender)] = body.clock
            if len(self.join_clocks) == len(self.parts):
                self.clock, self.join_clocks = max(self.join_clocks.values()), None
                yield from self._begin(None)
        elif isinstance(body, PullReply | ChangesReply) and self._is_expected(body):
            self.replies[number_of(sender)] = body
            if self.awaits and len(self.replies) == len(self.parts):
                yield from self._continue()
        elif isinstance(body, Stop) and not self.ended:
            self.stopping = True
            if self.awaits or self.join_clocks is not None or not self.cursor.shards:
                yield from self._leave()

    def _server_restarted(self, number: int) -> Iterator[Action]:
        """Repeat an unanswered request to a restarted server, and pull again where the server has answered already.

        The server has lost all that it has not persisted, and with it the clocks that it has answered at. Until the
        lost messages are sent again, it may let a worker join at an earlier clock. The staleness bound counts the
        deltas of that worker, which the parameters from before the crash cannot contain.
        """
        if self.join_clocks is not None and number not in self.join_clocks:
            yield Send(server(number), JoinRequest())
        elif self.pull_clock is None:
            self.outdated = True
        elif self.unseen:  # The server adds them before it handles a repeated pull, so all replies must be new.
            yield from self._pull()
        else:
            self.replies.pop(number, None)
            yield Send(server(number), Pull(self.pull_clock))

    def _begin(self, order: Begin | None) -> Iterator[Action]:
        """Pull the first parameters, and wait for them; ``order`` is None if the worker joins late."""
        if self.rounds and self._terms() == 0:
            yield from self._leave()
        else:
            self.awaits = True
            yield from self._pull()

    def _pull(self) -> Iterator[Action]:
        self.pull_clock, self.replies, self.unseen, self.outdated = self.clock, {}, [], False
        for number in range(len(self.parts)):
            yield Send(server(number), Pull(self.clock))

    def _continue(self) -> Iterator[Action]:
        """Adopt the parameters that have arrived, pull the next, and train, unless the worker is too far ahead."""
        if self.pull_clock is not None and len(self.replies) == len(self.parts):
            yield from self._adopt()
        if self.pull_clock is None and (self.outdated or self._own >= self.pull_every):
            yield from self._pull()
        terms = self._terms()
        if terms == 0:
            yield from self.cursor.wait()
        self.awaits = terms == 0 or (self.pull_clock is not None and not self._runs_ahead())
        if not self.awaits:
            yield self._burst(terms)

    def _is_expected(self, body: PullReply | ChangesReply) -> bool:
        """Return whether a reply is one to the pull on its way."""
        return body.clock == self.pull_clock

    def _runs_ahead(self) -> bool:
        """Return whether the worker may train before the replies to its pull arrive."""
        return len(self.unseen) < self.run_ahead

    def _adopt(self) -> Iterator[Action]:
        """Continue from the replies to the pull, plus the deltas that were pushed since."""
        yield from ()
        found = [self.replies[number] for number in range(len(self.parts))]
        pieces = [reply.values for reply in found if isinstance(reply, PullReply)]
        values = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        if self.unseen:
            values = values.copy()
            for vector in self.unseen:
                add(values, vector)
        self.values, self.got, self._own = frozen(values), self.replies, len(self.unseen)
        self.pull_clock, self.replies, self.unseen = None, {}, []

    def _burst(self, terms: int) -> Action:
        reply = self.got[0]
        progress = reply.progress + self._own * self.push_every * reply.members
        return self.cursor.burst(self.values, terms, progress, reply.members, self.together)

    def _terms(self) -> int:
        """Return the number of terms of the next burst, and 0 if no terms are left to the worker for now."""
        if self.rounds and self.config.goal is not None:
            return max(0, min(self.push_every, self.config.quota - self.clock * self.push_every))
        return self.cursor.next_terms(self.push_every)

    def _trained(self, event: Trained) -> Iterator[Action]:
        moved = self._moved(event)
        for number, (start, stop) in enumerate(self.parts):
            read, piece = self.got[number].version, compact(part(moved, start, stop))
            yield Send(server(number), Push(piece, self.clock, read, self._own, event.terms, event.samples, event.step))
        self.clock += 1
        self._own += 1
        if self.pull_clock is not None:
            self.unseen.append(moved)
        yield from self.cursor.trained(event, self.clock)
        if self.stopping or (self.rounds and self._terms() == 0):
            yield from self._leave()
        else:
            yield from self._continue()

    def _moved(self, event: Trained) -> Vector:
        """Return the delta of a burst as it is pushed, and continue from the parameters after it."""
        moved, self.values = self.sender(change(self.values, event.values)), frozen(event.values)
        return moved

    def _leave(self) -> Iterator[Action]:
        self.ended, self.awaits, self.join_clocks, self.pull_clock = True, False, None, None
        yield from self.cursor.report()
        for number in range(len(self.parts)):
            yield Send(server(number), Leave())
        yield Send(COORDINATOR, Stopped(self._counts()))

    def _counts(self) -> dict[str, Any]:
        return {"terms": self.cursor.done, "clock": self.clock}
