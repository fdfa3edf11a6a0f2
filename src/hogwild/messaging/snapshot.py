"""Consistent cuts: what all participants knew at one moment, taken without stopping any of them (Lai and Yang 1987).

The coordinator begins a cut. Everything that is sent carries the number of the sender's last cut, and whoever gets
something from beyond the next cut notes what it knows before it looks at that. So nobody has heard what nobody has
said. What was said and not heard is sent again, as always, by whoever said it: the posts are part of the cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hogwild.messaging.actions import Action, BeginSnapshot, Evaluate, SnapshotPart, Train, Transmit
from hogwild.messaging.events import Evaluated, Event, Received, Resumed, Trained
from hogwild.messaging.messages import SnapshotMarker
from hogwild.messaging.node import Node, Role
from hogwild.messaging.reliable_channel import ReliableChannel
from hogwild.messaging.run_config import RunConfig
from hogwild.messaging.state_codec import attributes, restore

_MADE_ANEW = ("me", "patience", "_alarmed")  # of a post


class SnapshottingNode:
    """A participant that takes part in cuts, and can go on from one."""

    def __init__(self, participant: Node, config: RunConfig) -> None:
        self.participant, self.config = participant, config
        self.cut = 0
        self._training: Train | None = None  # the burst that is going on
        self._measuring: Evaluate | None = None
        self._due: list[Action] = []  # what was going on at the cut it goes on from

    @property
    def role(self) -> Role:
        """What it does."""
        return self.participant.role

    @property
    def post(self) -> ReliableChannel:
        """Its mail."""
        return self.participant.post

    def react(self, event: Event) -> Iterator[Action]:
        """React to what happened, and note what is known where a cut goes through."""
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
        """Begin a cut, and let everybody know."""
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
        """Go on from a cut: this participant was made anew."""
        restore(self.role, known["role"], self.config)
        restore(self.post, known["post"], self.config)
        restore(self.participant, known["beside"], self.config)
        restore(self, known["here"], self.config)
        self._due = [action for action in (self._training, self._measuring) if action is not None]

    def _again(self) -> Iterator[Action]:
        """Do again what was not done, and say again what may not have been heard."""
        yield from self._due
        self.post.all_again()
        for send in self.post.resend():
            yield self._noted(send)
        yield from self.post.alarm()
