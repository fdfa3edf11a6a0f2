"""What happens to a participant, and what it does about it.

A participant never blocks, does no input or output and has no clock: it reacts to each event with actions, and whoever
runs it (a simulator, threads, a cluster) carries them out. Its role says what it does; the post within sees to it that
what roles say to each other arrives exactly once and in order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from hogwild.messaging.actions import Action, Persist, Send, Train, Transmit
from hogwild.messaging.events import Delivered, Event, PeerJoined, PeerLost, Received, Started, TimerFired
from hogwild.messaging.messages import Envelope
from hogwild.messaging.reliable_channel import RESEND, ReliableChannel


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
class Node:
    """A role with a post. ``react`` is all that a runtime calls."""

    role: Role
    post: ReliableChannel
    _held: Train | None = field(default=None, init=False)  # a burst that waits until others have received more

    def react(self, event: Event) -> list[Action]:
        """React to what happened with actions, none of which is a :class:`Transmit`."""
        post = self.post
        done: list[Action] = []  # passed along, because generators within generators take most of the time
        if isinstance(event, Received):
            self._received(event.envelope, done)
        elif isinstance(event, TimerFired) and event.name == RESEND:
            done += post.resend()
        elif isinstance(event, (PeerLost, PeerJoined)):
            for change in post.membership(event):
                self._pass_on(self.role.react(change), done)
        elif isinstance(event, Started):
            self._started(event, done)
        else:
            self._pass_on(self.role.react(event), done)
        if self._held is not None and not post.crowded:
            done.append(self._held)
            self._held = None
        done += post.alarm()
        return done

    def _started(self, event: Started, done: list[Action]) -> None:
        kept, gone = None, []
        if event.kept is not None:
            table, kept = event.kept
            gone = self.post.restore(table)
        self._pass_on(self.role.react(Started(kept, frozenset(self.post.present))), done)
        for peer, life in gone:
            self._pass_on(self.role.react(PeerLost(peer, life)), done)

    def _received(self, envelope: Envelope, done: list[Action]) -> None:
        post, sender = self.post, envelope.sender
        for change in post.news(envelope):  # a message may be the first sign of a new life
            self._pass_on(self.role.react(change), done)
        if post.receive(envelope):
            # One by one: what is kept meanwhile must not say that those still to be delivered have come.
            while (body := post.deliver(sender)) is not None:
                self._pass_on(self.role.react(Delivered(sender, body)), done)
            done.append(post.receipt(sender))

    def _pass_on(self, actions: Iterable[Action], done: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Send):
                self.post.clock, self.post.epoch = self.role.clock, self.role.epoch
                envelope = self.post.sealed(action.to, action.body)
                if envelope is not None:
                    done.append(Transmit(envelope))
            elif isinstance(action, Train) and self.post.crowded:
                self._held = action
            elif isinstance(action, Persist):
                done.append(Persist((self.post.table(), action.what)))
                done += self.post.kept()
            else:
                done.append(action)
