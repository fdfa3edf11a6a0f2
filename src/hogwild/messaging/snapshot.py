"""Consistent cuts: what all participants knew at one moment, taken without stopping any of them (Lai and Yang 1987).

The coordinator begins a cut. Everything that is sent carries the number of the sender's last cut, and whoever gets
something from beyond the next cut notes what it knows before it looks at that. So nobody has heard what nobody has
said. What was said and not heard is sent again, as always, by whoever said it: the posts are part of the cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hogwild.messaging.actions import Action, Cut, Measure, Save, Send, Train
from hogwild.messaging.events import Event, Measured, Received, Resumed, Trained
from hogwild.messaging.messages import Mark
from hogwild.messaging.node import Participant, Role
from hogwild.messaging.reliable_channel import Post
from hogwild.messaging.run_config import Setting
from hogwild.messaging.state_codec import attributes, put_back

_MADE_ANEW = ("me", "patience", "_alarmed")  # of a post


class Cutting:
    """A participant that takes part in cuts, and can go on from one."""

    def __init__(self, participant: Participant, setting: Setting) -> None:
        self.participant, self.setting = participant, setting
        self.cut = 0
        self._training: Train | None = None  # the burst that is going on
        self._measuring: Measure | None = None
        self._due: list[Action] = []  # what was going on at the cut it goes on from

    @property
    def role(self) -> Role:
        """What it does."""
        return self.participant.role

    @property
    def post(self) -> Post:
        """Its mail."""
        return self.participant.post

    def react(self, event: Event) -> Iterator[Action]:
        """React to what happened, and note what is known where a cut goes through."""
        if isinstance(event, Received) and event.envelope.cut > self.cut:
            self.cut = event.envelope.cut
            yield Save(self.cut, self._known(), self._training)
        if isinstance(event, Trained):
            self._training = None
        elif isinstance(event, Measured):
            self._measuring = None
        begins = False
        for action in self.participant.react(event):
            if isinstance(action, Cut):
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
        elif isinstance(action, Measure):
            self._measuring = action
        elif isinstance(action, Send):
            return Send(replace(action.envelope, cut=self.cut))
        return action

    def _begin(self) -> Iterator[Action]:
        """Begin a cut, and let everybody know."""
        self.cut += 1
        yield Save(self.cut, self._known(), self._training)
        for peer in sorted(self.post.present):
            envelope = self.post.sealed(peer, Mark())
            if envelope is not None:
                yield self._noted(Send(envelope))
        yield from self.post.alarm()

    def _known(self) -> dict[str, Any]:
        return {
            "role": attributes(self.role), "post": attributes(self.post, without=_MADE_ANEW),
            "beside": attributes(self.participant, without=("role", "post")),
            "here": attributes(self, without=("participant", "setting", "_due")),
        }  # fmt: skip

    def put_back(self, known: dict[str, Any]) -> None:
        """Go on from a cut: this participant was made anew."""
        put_back(self.role, known["role"], self.setting)
        put_back(self.post, known["post"], self.setting)
        put_back(self.participant, known["beside"], self.setting)
        put_back(self, known["here"], self.setting)
        self._due = [action for action in (self._training, self._measuring) if action is not None]

    def _again(self) -> Iterator[Action]:
        """Do again what was not done, and say again what may not have been heard."""
        yield from self._due
        self.post.all_again()
        for send in self.post.resend():
            yield self._noted(send)
        yield from self.post.alarm()
