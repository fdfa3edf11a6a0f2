"""Ray actor: the process that runs one incarnation of a node."""

from __future__ import annotations

import platform
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import ray

from hogwild.errors import MessageError
from hogwild.messaging.job import LocalTrainer, MessageJob, Traffic
from hogwild.messaging.messages import COORDINATOR, Ack, number_of
from hogwild.messaging.node import Node
from hogwild.messaging.protocol import (
    Event,
    Finish,
    Interrupted,
    PeerJoined,
    PeerLost,
    Received,
    Resumed,
    SnapshotPart,
    Started,
    TimerFired,
)
from hogwild.messaging.reliable_channel import RESEND as RESENDING
from hogwild.messaging.reliable_channel import ReliableChannel, is_durable
from hogwild.runtimes.messaging.actor import Actor, Evaluator
from hogwild.runtimes.messaging.faults import Link
from hogwild.runtimes.messaging.snapshot_collector import restore_node, snapshotting
from hogwild.runtimes.ray.actor_context import ActorContext, FaultyTransport, News, Transport
from hogwild.runtimes.ray.state_replication import StateStore
from hogwild.runtimes.ray.wire_codec import decode_envelopes

PATIENCE = 1.0  # seconds without an acknowledgement after which a message is retransmitted
MOST_UNREAD = 8192  # unread messages above which a node drops incoming calls; senders retransmit their messages

Peers = dict[str, tuple[int, Any]]
"""The other running nodes: the incarnation and the Ray handle of each, by name."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Heartbeat of an actor: its counters, and the events since the previous heartbeat."""

    events: int = 0
    busy: float = 0.0  # seconds of all bursts
    longest: float = 0.0  # seconds of the longest burst that the actor knows of
    calls: int = 0  # calls to other actors
    unread: int = 0  # events in the mailbox
    resent: int = 0  # retransmitted messages
    refused: int = 0  # messages from or to an incarnation that has terminated
    malformed: int = 0  # calls whose bytes are not valid messages
    traffic: dict[str, Traffic] = field(default_factory=dict)  # sent messages and bytes, by kind of message
    failure: str = ""  # description of the error that stopped the node; empty without one
    news: News = field(default_factory=list)
    saves: list[SnapshotPart] = field(default_factory=list)
    finished: tuple[Finish, float] | None = None  # the end of the run and its seconds; from the coordinator only
    ready: bool = False  # whether the node has finished its preparation and can start
    bursts: int = 0
    updates: int = 0
    delays: dict[str, dict[int, int]] = field(default_factory=dict)  # for each worker: staleness -> occurrences


@dataclass(frozen=True, slots=True)
class ResumeState:
    """Part of a snapshot from which one node resumes."""

    seconds: float  # seconds of the run until the snapshot
    known: dict[str, Any]  # state of the node in the snapshot
    news: list[PeerLost | PeerJoined]  # membership changes before the snapshot


@dataclass(frozen=True, slots=True)
class ActorLocation:
    """Location of a process: Ray node, machine, process id and creation time.

    The operating system reuses process ids. The creation time distinguishes a process from a later one with the same
    id.
    """

    node: str  # id of the Ray node
    machine: str  # identifier from ``here()``
    process: int  # process id
    created: float  # creation time, in seconds since the Unix epoch


def here() -> str:
    """Return an identifier of this machine's process-id namespace.

    Two processes with the same identifier have different process ids, and one can send signals to the other. The
    identifier joins the boot id and the namespace; without ``/proc`` it is the host name.
    """
    boot, space = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")
    if not boot.exists() or not space.exists():
        return platform.node()
    return f"{boot.read_text().strip()} {space.readlink()}"


class RayActor:
    """Ray actor of one incarnation of a node.

    Ray calls the methods one after the other. Each method returns at once: separate threads do all work that takes
    time, so that a heartbeat never waits for a burst.

    Parameters
    ----------
    name : str
        Name of the node, such as "worker-0", or "spare" for a standby process.
    life : int
        Incarnation of the node, from 0.
    job : MessageJob
        Roles, trainers and configuration of the run.
    slow : mapping of int to float
        Seconds that a worker sleeps after each burst, by worker number.
    link : Link, optional
        Latency, loss, duplication and reordering to inject into the actor's calls.
    """

    def __init__(
        self, name: str, life: int, job: MessageJob, slow: Mapping[int, float], link: Link | None = None
    ) -> None:
        self.job, self.slow, self.link = job, slow, link
        self.become(name, life)
        self._vault = StateStore()
        self._actor: Actor | None = None
        self._early: list[Event] = []  # events that arrived before ``begin``
        self._number = number_of(name) if name.startswith("worker") else -1
        self._learner: LocalTrainer | None = None
        self._ready = False
        self._malformed = 0
        threading.Thread(target=self._prepare, name="hogwild-prepares", daemon=True).start()

    def become(self, name: str, life: int) -> None:
        """Assume the name and the incarnation of a node.

        The constructor calls this method. The driver calls it again to turn a standby process into a server.
        """
        self.name, self.life = name, life
        lines = None
        if self.link is not None:
            rough = FaultyTransport(self.link, [self.job.seed, life, *name.encode()], Transport())
            lines = Transport(rough.call, rough.unanswered, rough.wait)
        self._desk = ActorContext(name, life, lines)

    def where(self) -> ActorLocation:
        """Return the location of this process."""
        me = psutil.Process()
        return ActorLocation(ray.get_runtime_context().get_node_id(), here(), me.pid, me.create_time())

    def begin(self, peers: Peers, kept: Any, sitting: ResumeState | None = None) -> None:
        """Start the node.

        Parameters
        ----------
        peers : Peers
            The other running nodes.
        kept : Any
            State that the previous incarnation of a server persisted; None without one.
        sitting : ResumeState, optional
            Part of the snapshot from which the run resumes.
        """
        desk, name = self._desk, self.name
        for peer, (_, handle) in peers.items():
            desk.outbox.connect(peer, handle)
        desk.open(peers[COORDINATOR][1] if is_durable(name) else None, kept, sitting.seconds if sitting else 0.0)
        try:
            post = ReliableChannel(name, self.life, {peer: life for peer, (life, _) in peers.items()}, PATIENCE)
            participant = snapshotting(Node(self.job.roles[name](), post), self.job)
            first: list[Event] = [Started(kept)]
            if sitting is not None:
                restore_node(participant, self._learner, sitting.known)
                first = [Resumed(sitting.seconds), *(news for news in sitting.news if news.peer != name)]
            slow = self.slow.get(self._number, 0.0)
            actor = Actor(desk, name, self.life, participant, self._learner, slow, self.job.seed, None)
        except Exception as error:
            desk.fail(name, error)
            return
        for event in (*first, *self._early):
            actor.put(event)
        self._actor = actor
        actor.thread.start()

    def deliver(self, *parts: Any) -> None:
        """Receive a batch of messages from another node.

        The actor drops the batch if its mailbox is too long, or if the bytes are malformed. The sender then retransmits
        the messages.
        """
        actor = self._actor
        if actor is not None and actor.unread > MOST_UNREAD:
            return
        try:
            envelopes = decode_envelopes(parts, self.job.config.size)
        except MessageError:
            self._malformed += 1
            return
        for envelope in envelopes:
            if actor is not None and isinstance(envelope.body, Ack) and not actor.participant.post.crowded:
                actor.receipt(Received(envelope))
            else:
                self._put(Received(envelope))

    def joined(self, peer: str, life: int, handle: Any) -> None:
        """Add a node to the membership: it has started, or restarted as a new incarnation."""
        self._desk.outbox.connect(peer, handle)
        self._put(PeerJoined(peer, life))
        if is_durable(peer):
            # A restarted server has lost the messages that it had not persisted, so they are retransmitted at once.
            self._put(TimerFired(RESENDING))

    def lost(self, peer: str, life: int) -> None:
        """Remove a crashed node from the membership."""
        self._desk.outbox.disconnect(peer)
        self._put(PeerLost(peer, life))

    def interrupt(self) -> None:
        """Interrupt the node: skip its injected delays, and pass the interrupt to its role.

        The driver interrupts the coordinator only, which then ends the run with the parameters that it has.
        """
        self._desk.hurry.set()
        self._put(Interrupted())

    def pulse(self, longest: float, sent: tuple[int, int]) -> Heartbeat:
        """Return a heartbeat, with the events since the previous one.

        Parameters
        ----------
        longest : float
            Seconds of the longest burst of any worker.
        sent : tuple of int
            Messages and bytes that all nodes have sent.

        Returns
        -------
        Heartbeat
            Counters and events of this actor.
        """
        desk, actor = self._desk, self._actor
        desk.sent = sent
        if actor is None:
            return Heartbeat(failure=desk.failure, malformed=self._malformed, ready=self._ready)
        mine, desk.longest = desk.longest, max(longest, desk.longest)
        post, finished = actor.participant.post, desk.finished
        return Heartbeat(
            actor.events, actor.busy, mine, desk.outbox.calls, actor.unread, post.resent, post.refused, self._malformed,
            dict(actor.traffic), desk.failure, desk.news(), desk.saves(), finished, True, actor.bursts,
            actor.updates, _delays(self.name, actor.participant.role),
        )  # fmt: skip

    def keep(self, name: str, life: int, what: Any) -> bool:
        """Store a server's state in this actor's state store; return whether the store has accepted it."""
        return self._vault.keep(name, life, what)

    def kept(self, name: str, life: int) -> Any:
        """Return the stored state for a new incarnation of a server; None without one."""
        return self._vault.kept(name, life)

    def _prepare(self) -> None:
        """Prepare the node in a separate thread: read the data, compile the kernels, and rehearse a burst."""
        desk = self._desk
        try:
            if self.name == COORDINATOR:
                desk.measurer = Evaluator(self.job.measure, desk.measured, desk.fail)
                desk.measurer.thread.start()
            elif self._number >= 0:
                self._learner = self.job.learner(self._number)
                if hasattr(self._learner, "rehearse"):
                    # Without a rehearsal the first burst includes compilation, and its delta has the largest staleness.
                    self._learner.rehearse(self.job.config.start)
            self._ready = True
        except BaseException as error:
            desk.fail(self.name, error)

    def _put(self, event: Event) -> None:
        if self._actor is None:
            self._early.append(event)
        else:
            self._actor.put(event)


def _delays(name: str, role: Any) -> dict[str, dict[int, int]]:
    """Return how often each staleness occurred, by worker.

    A ``Counter`` in the role is about the node's own exchanges. A mapping of counters, as in a parameter server, is
    about each worker that sends to the node. A role without ``delays`` counts nothing.
    """
    found = getattr(role, "delays", {})
    if isinstance(found, Counter):
        return {name: dict(found)}
    return {worker: dict(counts) for worker, counts in list(found.items())}
