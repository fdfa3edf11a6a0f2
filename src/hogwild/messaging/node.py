"""Nodes as state machines: events in, actions out.

A node never blocks, does no input or output, and reads no clock. It reacts to each event with actions. Its runtime (a
simulator, threads or a cluster) carries them out. The role of a node decides what the node does. The reliable channel
of the node delivers messages between roles exactly once and in order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
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

# Number of deltas by staleness: of the node itself, or of each worker that sends to it.
Staleness = Counter[int] | Mapping[str, Counter[int]]
NO_DELAYS: Mapping[str, Counter[int]] = MappingProxyType({})


class Role(Protocol):
    """State machine of a node. Every message that it sends carries its clock and its epoch."""

    @property
    def clock(self) -> int:
        """The progress of the role, in its own steps."""

    @property
    def epoch(self) -> int:
        """The epoch that the role is in."""

    @property
    def delays(self) -> Staleness:
        """The number of deltas by their staleness; ``NO_DELAYS`` of a role that measures none."""

    def react(self, event: Event) -> Iterable[Action]:
        """React to an event with actions."""


Roles = Mapping[str, Callable[[], Role]]
"""Functions that make the role of a node, at its start and after each crash, by name of the node."""


@dataclass(eq=False)
class Node:
    """Role with a reliable channel. A runtime calls only ``react``."""

    role: Role
    channel: ReliableChannel
    # A burst that waits until other nodes have acknowledged more messages.
    _held: Train | None = field(default=None, init=False)

    def react(self, event: Event) -> list[Action]:
        """React to an event with actions, none of which is a :class:`Send`: each is a :class:`Transmit` instead."""
        channel = self.channel
        # Methods append to one list, because nested generators would take most of the time.
        done: list[Action] = []
        if isinstance(event, Received):
            self._received(event.envelope, done)
        elif isinstance(event, TimerFired) and event.name == RESEND:
            done += channel.resend()
        elif isinstance(event, (PeerLost, PeerJoined)):
            for change in channel.membership(event):
                self._pass_on(self.role.react(change), done)
        elif isinstance(event, Started):
            self._started(event, done)
        else:
            self._pass_on(self.role.react(event), done)
        if self._held is not None and not channel.window_full:
            done.append(self._held)
            self._held = None
        done += channel.set_timer()
        return done

    def _started(self, event: Started, done: list[Action]) -> None:
        kept, ended = None, []
        if event.kept is not None:
            table, kept = event.kept
            ended = self.channel.restore(table)
        self._pass_on(self.role.react(Started(kept, frozenset(self.channel.present))), done)
        for peer, incarnation in ended:
            self._pass_on(self.role.react(PeerLost(peer, incarnation)), done)

    def _received(self, envelope: Envelope, done: list[Action]) -> None:
        channel, sender = self.channel, envelope.sender
        # A message may be the first evidence of a new incarnation of its sender.
        for change in channel.implied_membership(envelope):
            self._pass_on(self.role.react(change), done)
        if channel.receive(envelope):
            # Messages are delivered one by one. A state persisted during a delivery must not record messages that are
            # still undelivered as received.
            while (body := channel.deliver(sender)) is not None:
                self._pass_on(self.role.react(Delivered(sender, body)), done)
            done.append(channel.ack(sender))

    def _pass_on(self, actions: Iterable[Action], done: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Send):
                self.channel.clock, self.channel.epoch = self.role.clock, self.role.epoch
                envelope = self.channel.wrap(action.to, action.body)
                if envelope is not None:
                    done.append(Transmit(envelope))
            elif isinstance(action, Train) and self.channel.window_full:
                self._held = action
            elif isinstance(action, Persist):
                done.append(Persist((self.channel.table(), action.what)))
                done += self.channel.durable_acks()
            else:
                done.append(action)
