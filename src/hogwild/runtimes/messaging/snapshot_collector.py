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
        self._number, self._parts = 0, dict[str, Any]()

    def discard(self) -> None:
        """Discard the incomplete snapshot, because a node has started or crashed."""
        self._parts = {}

    def add(
        self, name: str, part: SnapshotPart, starts: Mapping[str, int], running: set[str], seconds: float
    ) -> dict[str, Any] | None:
        """Add the part of one node; return the snapshot once it is complete, else None.

        Parameters
        ----------
        name : str
            Name of the node.
        part : SnapshotPart
            Part of the snapshot from that node.
        starts : mapping of str to int
            Number of starts of each node so far, one for each incarnation.
        running : set of str
            Names of all running nodes.
        seconds : float
            Seconds since the start of the run.

        Returns
        -------
        dict or None
            The states of all nodes as ``people``, with ``seconds`` and ``births``.
        """
        if part.number > self._number:
            self._number, self._parts = part.number, {}
        if part.number == self._number:
            self._parts[name] = part.what
        if self._parts.keys() != running:
            return None
        nodes, self._parts = self._parts, {}
        return {"nodes": nodes, "seconds": seconds, "starts": dict(starts)}


def with_trainer_state(part: SnapshotPart, trainer: LocalTrainer | None) -> SnapshotPart:
    """Add the state of a stateful trainer, such as an optimiser's moments, to a node's part; return that part."""
    if isinstance(trainer, StatefulTrainer):
        part.what["trainer"] = trainer.memory(part.training)
    return part


def snapshotting(node: Node, job: MessageJob) -> Node | SnapshottingNode:
    """Return a node that takes part in snapshots if the job saves any, else the node itself."""
    return node if job.save is None else SnapshottingNode(node, job.config)


def restore_node(node: Node | SnapshottingNode, trainer: LocalTrainer | None, state: dict[str, Any]) -> None:
    """Restore the state of a new node, and of its trainer, from its part of a snapshot."""
    assert isinstance(node, SnapshottingNode)
    node.put_back(state)
    if isinstance(trainer, StatefulTrainer) and "trainer" in state:
        trainer.remember(state["trainer"])


def incarnations_of(snapshot: dict[str, Any]) -> dict[str, int]:
    """Return the incarnation of each node that was running at a snapshot."""
    return {name: snapshot["starts"][name] - 1 for name in snapshot["nodes"]}


def membership_events(snapshot: dict[str, Any]) -> list[PeerLost | PeerJoined]:
    """Return the restarts and the crashes before a snapshot, which not all nodes may have processed by then."""
    incarnations, starts = incarnations_of(snapshot), snapshot["starts"]
    back = [PeerJoined(name, incarnation) for name, incarnation in incarnations.items() if incarnation > 0]
    return [*back, *(PeerLost(name, starts[name] - 1) for name in starts if name not in incarnations and starts[name])]
