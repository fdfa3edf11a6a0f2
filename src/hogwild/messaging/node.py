"""Nodes as state machines: events in, actions out.

A node never blocks, does no input or output, and reads no clock. It reacts to each event with actions. Its runtime (a
simulator, threads or a cluster) carries them out. The role of a node decides what the node does. The reliable channel
of the node delivers messages between roles exactly once and in order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from hogwild.messaging.messages import Envelope
from hogwild.messaging.protocol import (
    Action,
    Delivered,
    Event,
    PeerJoined,
    PeerLost,
    Persist,
    Received,
    Send,
    Started,
    TimerFired,
    Train,
    Transmit,
)
from hogwild.messaging.reliable_channel import RESEND, ReliableChannel


class Role(Protocol):
    """State machine of a node. Every message that it sends carries its clock and its epoch."""

    @property
    def clock(self) -> int:
        """The progress of the role, in its own steps."""

    @property
    def epoch(self) -> int:
        """The epoch that the role is in."""

    def react(self, event: Event) -> Iterable[Action]:
        """React to an event with actions."""


@dataclass(eq=False)
class Node:
    """Role with a reliable channel. A runtime calls only ``react``."""

    role: Role
    post: ReliableChannel
    # A burst that waits until other nodes have acknowledged more messages.
    _held: Train | None = field(default=None, init=False)

    def react(self, event: Event) -> list[Action]:
        """React to an event with actions, none of which is a :class:`Send`: each is a :class:`Transmit` instead."""
        post = self.post
        # Methods append to one list, because nested generators would take most of the time.
        done: list[Action] = []
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
        # A message may be the first evidence of a new incarnation of its sender.
        for change in post.news(envelope):
            self._pass_on(self.role.react(change), done)
        if post.receive(envelope):
            # Messages are delivered one by one. A state persisted during a delivery must not record messages that are
            # still undelivered as received.
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
