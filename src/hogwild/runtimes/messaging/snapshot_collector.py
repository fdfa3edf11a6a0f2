"""Snapshots in the message-passing runtimes: collect the parts of all nodes, and resume nodes from a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hogwild.messaging.job import LocalTrainer, MessageJob, StatefulTrainer
from hogwild.messaging.node import Node
from hogwild.messaging.protocol import PeerJoined, PeerLost, SnapshotPart
from hogwild.messaging.snapshot import SnapshottingNode


class SnapshotCollector:
    """Collects the parts of the latest snapshot.

    A snapshot is complete when all running nodes have contributed their parts. If a node starts or crashes during a
    snapshot, that snapshot never becomes complete.
    """

    def __init__(self) -> None:
        self._number, self._known = 0, dict[str, Any]()

    def disturb(self) -> None:
        """Discard the incomplete snapshot, because a node has started or crashed."""
        self._known = {}

    def add(self, name: str, save: SnapshotPart, births: Mapping[str, int], there: set[str], seconds: float) -> Any:
        """Add the part of one node; return the snapshot once it is complete, else None.

        Parameters
        ----------
        name : str
            Name of the node.
        save : SnapshotPart
            Part of the snapshot from that node.
        births : mapping of str to int
            Number of incarnations of each node so far.
        there : set of str
            Names of all running nodes.
        seconds : float
            Seconds since the start of the run.

        Returns
        -------
        dict or None
            The states of all nodes as ``people``, with ``seconds`` and ``births``.
        """
        if save.number > self._number:
            self._number, self._known = save.number, {}
        if save.number == self._number:
            self._known[name] = save.what
        if self._known.keys() != there:
            return None
        people, self._known = self._known, {}
        return {"people": people, "seconds": seconds, "births": dict(births)}


def with_trainer_state(save: SnapshotPart, learner: LocalTrainer | None) -> SnapshotPart:
    """Add the state of a stateful trainer, such as an optimiser's moments, to a node's part; return that part."""
    if isinstance(learner, StatefulTrainer):
        save.what["learner"] = learner.memory(save.training)
    return save


def snapshotting(participant: Node, job: MessageJob) -> Node | SnapshottingNode:
    """Return a node that takes part in snapshots if the job saves any, else the node itself."""
    return participant if job.save is None else SnapshottingNode(participant, job.config)


def restore_node(person: Node | SnapshottingNode, learner: LocalTrainer | None, known: dict[str, Any]) -> None:
    """Restore the state of a new node, and of its trainer, from its part of a snapshot."""
    assert isinstance(person, SnapshottingNode)
    person.put_back(known)
    if isinstance(learner, StatefulTrainer) and "learner" in known:
        learner.remember(known["learner"])


def incarnations_of(cut: dict[str, Any]) -> dict[str, int]:
    """Return the incarnation of each node that was running at a snapshot."""
    return {name: cut["births"][name] - 1 for name in cut["people"]}


def membership_events(cut: dict[str, Any]) -> list[PeerLost | PeerJoined]:
    """Return the restarts and the crashes before a snapshot, which not all nodes may have processed by then."""
    lives, births = incarnations_of(cut), cut["births"]
    back = [PeerJoined(name, life) for name, life in lives.items() if life > 0]
    return [*back, *(PeerLost(name, births[name] - 1) for name in births if name not in lives and births[name])]
