"""Consistent snapshots, taken without stopping any node (Lai and Yang 1987).

The coordinator begins a snapshot. Every envelope carries the number of the last snapshot of its sender. A node records
its state before it handles an envelope with a higher number than its own. So no recorded state contains the effect of a
message whose sending is not recorded as well. Messages in transit at the cut need no record of their own: the reliable
channels are part of the snapshot, and retransmit them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hogwild.messaging.job import RunConfig
from hogwild.messaging.messages import SnapshotMarker
from hogwild.messaging.node import Node, Role
from hogwild.messaging.protocol import (
    Action,
    BeginSnapshot,
    Evaluate,
    Evaluated,
    Event,
    Received,
    Resumed,
    SnapshotPart,
    Train,
    Trained,
    Transmit,
)
from hogwild.messaging.reliable_channel import ReliableChannel
from hogwild.messaging.state_codec import attributes, restore

# Attributes of a reliable channel that a restored node does not take from the snapshot.
_NOT_RESTORED = ("me", "patience", "_timer_set")


class SnapshottingNode:
    """Node that takes part in snapshots, and can resume from a snapshot."""

    def __init__(self, node: Node, config: RunConfig) -> None:
        self.node, self.config = node, config
        self.cut = 0  # Number of the last snapshot that the node took part in.
        self._training: Train | None = None  # The burst that is running.
        self._evaluating: Evaluate | None = None  # The evaluation that is running.
        self._to_repeat: list[Action] = []  # Actions that ran at the snapshot from which the node resumes.

    @property
    def role(self) -> Role:
        """The role of the node."""
        return self.node.role

    @property
    def channel(self) -> ReliableChannel:
        """The reliable channel of the node."""
        return self.node.channel

    def react(self, event: Event) -> Iterator[Action]:
        """React to an event, and record the state of the node first if the event belongs to a new snapshot."""
        if isinstance(event, Received) and event.envelope.cut > self.cut:
            self.cut = event.envelope.cut
            yield SnapshotPart(self.cut, self._state(), self._training)
        if isinstance(event, Trained):
            self._training = None
        elif isinstance(event, Evaluated):
            self._evaluating = None
        begins = False
        for action in self.node.react(event):
            if isinstance(action, BeginSnapshot):
                begins = True
            else:
                yield self._tracked(action)
        if isinstance(event, Resumed):
            yield from self._repeat()
        if begins:
            yield from self._begin()

    def _tracked(self, action: Action) -> Action:
        if isinstance(action, Train):
            self._training = action
        elif isinstance(action, Evaluate):
            self._evaluating = action
        elif isinstance(action, Transmit):
            return Transmit(replace(action.envelope, cut=self.cut))
        return action

    def _begin(self) -> Iterator[Action]:
        """Begin a snapshot, and announce it to all nodes that are present."""
        self.cut += 1
        yield SnapshotPart(self.cut, self._state(), self._training)
        for peer in sorted(self.channel.present):
            envelope = self.channel.wrap(peer, SnapshotMarker())
            if envelope is not None:
                yield self._tracked(Transmit(envelope))
        yield from self.channel.set_timer()

    def _state(self) -> dict[str, Any]:
        return {
            "role": attributes(self.role), "channel": attributes(self.channel, without=_NOT_RESTORED),
            "beside": attributes(self.node, without=("role", "channel")),
            "here": attributes(self, without=("node", "config", "_to_repeat")),
        }  # fmt: skip

    def put_back(self, known: dict[str, Any]) -> None:
        """Restore the state of a snapshot in a node that has just been made."""
        restore(self.role, known["role"], self.config)
        restore(self.channel, known["channel"], self.config)
        restore(self.node, known["beside"], self.config)
        restore(self, known["here"], self.config)
        self._to_repeat = [action for action in (self._training, self._evaluating) if action is not None]

    def _repeat(self) -> Iterator[Action]:
        """Repeat the burst and the evaluation that ran at the cut, and retransmit all unacknowledged messages."""
        yield from self._to_repeat
        self.channel.mark_all_for_resend()
        for send in self.channel.resend():
            yield self._tracked(send)
        yield from self.channel.set_timer()
