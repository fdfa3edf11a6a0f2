"""What runtimes by messages do about checkpoints: gather what all knew at a cut, and go on from one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hogwild.messaging.actions import SnapshotPart
from hogwild.messaging.events import PeerJoined, PeerLost
from hogwild.messaging.job import LocalTrainer, MessageJob, StatefulTrainer
from hogwild.messaging.node import Node
from hogwild.messaging.snapshot import SnapshottingNode


class SnapshotCollector:
    """What was known at the last cut, by whom so far.

    A cut is whole when it has gone through all who are there; one during which somebody came or went never is.
    """

    def __init__(self) -> None:
        self._number, self._known = 0, dict[str, Any]()

    def disturb(self) -> None:
        """Somebody comes or goes."""
        self._known = {}

    def add(self, name: str, save: SnapshotPart, births: Mapping[str, int], there: set[str], seconds: float) -> Any:
        """What one of those who are there knew; return what all did, once that is so."""
        if save.number > self._number:
            self._number, self._known = save.number, {}
        if save.number == self._number:
            self._known[name] = save.what
        if self._known.keys() != there:
            return None
        people, self._known = self._known, {}
        return {"people": people, "seconds": seconds, "births": dict(births)}


def with_trainer_state(save: SnapshotPart, learner: LocalTrainer | None) -> SnapshotPart:
    """The same, with what a learner remembers beside the parameters."""
    if isinstance(learner, StatefulTrainer):
        save.what["learner"] = learner.memory(save.training)
    return save


def snapshotting(participant: Node, job: MessageJob) -> Node | SnapshottingNode:
    """A participant that takes part in cuts, if there are any."""
    return participant if job.save is None else SnapshottingNode(participant, job.config)


def restore_node(person: Node | SnapshottingNode, learner: LocalTrainer | None, known: dict[str, Any]) -> None:
    """Let a participant, made anew, go on with what it knew at a cut."""
    assert isinstance(person, SnapshottingNode)
    person.put_back(known)
    if isinstance(learner, StatefulTrainer) and "learner" in known:
        learner.remember(known["learner"])


def incarnations_of(cut: dict[str, Any]) -> dict[str, int]:
    """Who was there at a cut, in which life."""
    return {name: cut["births"][name] - 1 for name in cut["people"]}


def membership_events(cut: dict[str, Any]) -> list[PeerLost | PeerJoined]:
    """Who had come again or gone by then, which some may not have known."""
    lives, births = incarnations_of(cut), cut["births"]
    back = [PeerJoined(name, life) for name, life in lives.items() if life > 0]
    return [*back, *(PeerLost(name, births[name] - 1) for name in births if name not in lives and births[name])]
