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
_MADE_ANEW = ("me", "patience", "_alarmed")


class SnapshottingNode:
    """Node that takes part in snapshots, and can resume from a snapshot."""

    def __init__(self, participant: Node, config: RunConfig) -> None:
        self.participant, self.config = participant, config
        self.cut = 0  # Number of the last snapshot that the node took part in.
        self._training: Train | None = None  # The burst that is running.
        self._measuring: Evaluate | None = None  # The evaluation that is running.
        self._due: list[Action] = []  # Actions that ran at the snapshot from which the node resumes.

    @property
    def role(self) -> Role:
        """The role of the node."""
        return self.participant.role

    @property
    def post(self) -> ReliableChannel:
        """The reliable channel of the node."""
        return self.participant.post

    def react(self, event: Event) -> Iterator[Action]:
        """React to an event, and record the state of the node first if the event belongs to a new snapshot."""
        if isinstance(event, Received) and event.envelope.cut > self.cut:
            self.cut = event.envelope.cut
            yield SnapshotPart(self.cut, self._known(), self._training)
        if isinstance(event, Trained):
            self._training = None
        elif isinstance(event, Evaluated):
            self._measuring = None
        begins = False
        for action in self.participant.react(event):
            if isinstance(action, BeginSnapshot):
                begins = True
            else:
                yield self._noted(action)
        if isinstance(event, Resumed):
            yield from self._again()
        if begins:
            yield from self._begin()

    def _noted(self, action: Action) -> Action:
        if isinstance(action, Train):
            self._training = action
        elif isinstance(action, Evaluate):
            self._measuring = action
        elif isinstance(action, Transmit):
            return Transmit(replace(action.envelope, cut=self.cut))
        return action

    def _begin(self) -> Iterator[Action]:
        """Begin a snapshot, and announce it to all nodes that are present."""
        self.cut += 1
        yield SnapshotPart(self.cut, self._known(), self._training)
        for peer in sorted(self.post.present):
            envelope = self.post.sealed(peer, SnapshotMarker())
            if envelope is not None:
                yield self._noted(Transmit(envelope))
        yield from self.post.alarm()

    def _known(self) -> dict[str, Any]:
        return {
            "role": attributes(self.role), "post": attributes(self.post, without=_MADE_ANEW),
            "beside": attributes(self.participant, without=("role", "post")),
            "here": attributes(self, without=("participant", "config", "_due")),
        }  # fmt: skip

    def put_back(self, known: dict[str, Any]) -> None:
        """Restore the state of a snapshot in a node that has just been made."""
        restore(self.role, known["role"], self.config)
        restore(self.post, known["post"], self.config)
        restore(self.participant, known["beside"], self.config)
        restore(self, known["here"], self.config)
        self._due = [action for action in (self._training, self._measuring) if action is not None]

    def _again(self) -> Iterator[Action]:
        """Repeat the burst and the evaluation that ran at the cut, and retransmit all unacknowledged messages."""
        yield from self._due
        self.post.all_again()
        for send in self.post.resend():
            yield self._noted(send)
        yield from self.post.alarm()
