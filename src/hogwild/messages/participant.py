"""What happens to a participant, and what it does about it.

A participant never blocks, does no input or output and has no clock: it reacts to each event with actions, and whoever
runs it (a simulator, threads, a cluster) carries them out. Its role says what it does; the post within sees to it that
what roles say to each other arrives exactly once and in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from hogwild.messages.actions import Action, Keep, Say, Send, Train
from hogwild.messages.events import Event, Heard, Joined, Lost, Rang, Received, Started
from hogwild.messages.message import Envelope
from hogwild.messages.post import RESEND, Post


class Role(Protocol):
    """What a participant does: a state machine. Its clock and epoch go with everything it says."""

    @property
    def clock(self) -> int:
        """How far it is, in its own steps."""

    @property
    def epoch(self) -> int:
        """In which walk over the data it is."""

    def react(self, event: Event) -> Iterable[Action]:
        """React to what happened."""


@dataclass(eq=False)
class Participant:
    """A role with a post. ``react`` is all that a runtime calls."""

    role: Role
    post: Post
    _held: Train | None = field(default=None, init=False)  # a burst that waits until others have received more

    def react(self, event: Event) -> Iterator[Action]:
        """React to what happened with actions, none of which is a :class:`Say`."""
        post = self.post
        if isinstance(event, Received):
            yield from self._received(event.envelope)
        elif isinstance(event, Rang) and event.name == RESEND:
            yield from post.resend()
        elif isinstance(event, Lost | Joined):
            for change in post.membership(event):
                yield from self._passed_on(self.role.react(change))
        elif isinstance(event, Started):
            yield from self._started(event)
        else:
            yield from self._passed_on(self.role.react(event))
        if self._held is not None and not post.crowded:
            held, self._held = self._held, None
            yield held
        yield from post.alarm()

    def _started(self, event: Started) -> Iterator[Action]:
        kept, gone = None, []
        if event.kept is not None:
            table, kept = event.kept
            gone = self.post.restore(table)
        yield from self._passed_on(self.role.react(Started(kept, frozenset(self.post.present))))
        for peer, life in gone:
            yield from self._passed_on(self.role.react(Lost(peer, life)))

    def _received(self, envelope: Envelope) -> Iterator[Action]:
        post, sender = self.post, envelope.sender
        for change in post.news(envelope):  # a message may be the first sign of a new life
            yield from self._passed_on(self.role.react(change))
        if post.receive(envelope):
            # One by one: what is kept meanwhile must not say that those still to be delivered have come.
            while (body := post.deliver(sender)) is not None:
                yield from self._passed_on(self.role.react(Heard(sender, body)))
            yield post.receipt(sender)

    def _passed_on(self, actions: Iterable[Action]) -> Iterator[Action]:
        for action in actions:
            if isinstance(action, Say):
                self.post.clock, self.post.epoch = self.role.clock, self.role.epoch
                envelope = self.post.sealed(action.to, action.body)
                if envelope is not None:
                    yield Send(envelope)
            elif isinstance(action, Train) and self.post.crowded:
                self._held = action
            elif isinstance(action, Keep):
                yield Keep((self.post.table(), action.what))
                yield from self.post.kept()
            else:
                yield action
