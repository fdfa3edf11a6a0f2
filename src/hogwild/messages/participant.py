"""What happens to a participant, and what it does about it.

A participant never blocks, does no input or output and has no clock: it reacts to each event with actions, and whoever
runs it (a simulator, threads, a cluster) carries them out. Its role says what it does; the post within sees to it that
what roles say to each other arrives exactly once and in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from hogwild.messages.actions import Action, Keep, Say, Send
from hogwild.messages.events import Event, Heard, Joined, Lost, Rang, Received, Started
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

    def react(self, event: Event) -> Iterator[Action]:
        """React to what happened with actions, none of which is a :class:`Say`."""
        post = self.post
        if isinstance(event, Received):
            for change in post.news(event.envelope):  # a message may be the first sign of a new life
                yield from self._passed_on(self.role.react(change))
            bodies, answers = post.receive(event.envelope)
            for body in bodies:
                yield from self._passed_on(self.role.react(Heard(event.envelope.sender, body)))
            yield from answers
        elif isinstance(event, Rang) and event.name == RESEND:
            yield from post.resend()
        elif isinstance(event, Lost | Joined):
            for change in post.membership(event):
                yield from self._passed_on(self.role.react(change))
        else:
            gone = []
            if isinstance(event, Started) and event.kept is not None:
                table, kept = event.kept
                gone, event = post.restore(table), Started(kept)
            yield from self._passed_on(self.role.react(event))
            for peer, life in gone:
                yield from self._passed_on(self.role.react(Lost(peer, life)))
        yield from post.alarm()

    def _passed_on(self, actions: Iterable[Action]) -> Iterator[Action]:
        for action in actions:
            if isinstance(action, Say):
                self.post.clock, self.post.epoch = self.role.clock, self.role.epoch
                yield Send(self.post.sealed(action.to, action.body))
            elif isinstance(action, Keep):
                yield Keep((self.post.table(), action.what))
                yield from self.post.kept()
            else:
                yield action
