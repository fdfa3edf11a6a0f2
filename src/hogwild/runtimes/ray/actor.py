"""Ray actor: the process that runs one incarnation of a node."""

from __future__ import annotations

import os
import platform
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray

from hogwild.delays import DelayOption, DelayStream
from hogwild.errors import MessageError
from hogwild.messaging import deltas
from hogwild.messaging.job import LocalTrainer, MessageJob, Traffic
from hogwild.messaging.messages import COORDINATOR, Ack, Stop, is_worker, number_of
from hogwild.messaging.node import Node, Role
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
from hogwild.messaging.reliable_channel import ReliableChannel, Table, is_durable
from hogwild.process_start import process_start
from hogwild.runtimes.messaging.actor import Actor, Evaluator
from hogwild.runtimes.messaging.injected_faults import Link
from hogwild.runtimes.messaging.snapshot_collector import restore_node, snapshotting
from hogwild.runtimes.ray.actor_context import ActorContext, EmittedEvents, FaultyTransport, PeerAddress, Transport
from hogwild.runtimes.ray.local_socket import SocketListener, available
from hogwild.runtimes.ray.state_replication import StateStore
from hogwild.runtimes.ray.wire_codec import PLAIN, decode_envelopes

RESEND_TIMEOUT = 1.0  # seconds without an acknowledgement after which a message is retransmitted
MOST_UNREAD = 8192  # unread messages above which a node drops incoming calls; senders retransmit their messages

Peers = dict[str, PeerAddress]
"""The other running nodes, by name."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Heartbeat of an actor: its counters, and the events since the previous heartbeat."""

    events: int = 0
    busy: float = 0.0  # seconds of all bursts
    longest_burst: float = 0.0  # seconds of the longest burst that the actor knows of
    calls: int = 0  # calls to other actors
    unread: int = 0  # events in the mailbox
    resent: int = 0  # retransmitted messages
    refused: int = 0  # messages from or to an incarnation that has terminated
    malformed: int = 0  # calls whose bytes are not valid messages
    traffic: dict[str, Traffic] = field(default_factory=dict)  # sent messages and bytes, by kind of message
    failure: str = ""  # description of the error that stopped the node; empty without one
    emitted: EmittedEvents = field(default_factory=list)
    snapshot_parts: list[SnapshotPart] = field(default_factory=list)
    finished: tuple[Finish, float] | None = None  # the end of the run and its seconds; from the coordinator only
    ready: bool = False  # whether the node has finished its preparation and can start
    bursts: int = 0
    updates: int = 0
    delays: dict[str, dict[int, int]] = field(default_factory=dict)  # for each worker: staleness -> occurrences


@dataclass(frozen=True, slots=True)
class ResumeState:
    """Part of a snapshot from which one node resumes."""

    seconds: float  # seconds of the run until the snapshot
    state: dict[str, Any]  # state of the node in the snapshot
    changes: list[PeerLost | PeerJoined]  # membership changes before the snapshot


@dataclass(frozen=True, slots=True)
class ActorLocation:
    """Location of a process: Ray node, machine, process id and creation time.

    The operating system reuses process ids. The creation time distinguishes a process from a later one with the same
    id.
    """

    node: str  # id of the Ray node
    machine: str  # identifier from ``machine_id()``
    process: int  # process id
    started: str  # start of the process, because its number may be used again
    socket: str = ""  # name of the socket for calls from the same Ray node; empty without one


def machine_id() -> str:
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
    incarnation : int
        Incarnation of the node, from 0.
    job : MessageJob
        Roles, trainers and configuration of the run.
    delay : DelayOption
        Seconds that a worker waits with each of its updates, for all workers or by worker number.
    link : Link, optional
        Latency, loss, duplication and reordering to inject into the actor's calls.
    """

    def __init__(
        self, name: str, incarnation: int, job: MessageJob, delay: DelayOption, link: Link | None = None
    ) -> None:
        self.job, self.delay, self.link = job, delay, link
        self.become(name, incarnation)
        self._store = StateStore()
        self._actor: Actor | None = None
        self._early: list[Event] = []  # events that arrived before ``begin``
        self._number = number_of(name) if is_worker(name) else -1
        self._trainer: LocalTrainer | None = None
        self._ready = False
        self._malformed = 0
        self._lock = threading.Lock()  # for the events that arrive while the node starts
        self._listener = SocketListener(self.deliver, 2 * PLAIN + 16 * job.config.size) if available() else None
        threading.Thread(target=self._prepare, name="hogwild-prepare", daemon=True).start()

    def become(self, name: str, incarnation: int) -> None:
        """Assume the name and the incarnation of a node.

        The constructor calls this method. The driver calls it again to turn a standby process into a server.
        """
        self.name, self.incarnation = name, incarnation
        transport = None
        if self.link is not None:
            faulty = FaultyTransport(self.link, [self.job.seed, incarnation, *name.encode()], Transport())
            transport = Transport(faulty.call, faulty.unanswered, faulty.wait)
        self._context = ActorContext(name, incarnation, transport)

    def location(self) -> ActorLocation:
        """Return the location of this process."""
        name = "" if self._listener is None else self._listener.name
        return ActorLocation(ray.get_runtime_context().get_node_id(), machine_id(), os.getpid(), process_start(), name)

    def begin(
        self, peers: Peers, persisted: tuple[Table, object] | None, resume_state: ResumeState | None = None
    ) -> None:
        """Start the node.

        Parameters
        ----------
        peers : Peers
            The other running nodes.
        persisted : tuple or None
            State that the previous incarnation of a server persisted; None without one.
        resume_state : ResumeState, optional
            Part of the snapshot from which the run resumes.
        """
        context, name = self._context, self.name
        for peer, address in peers.items():
            context.connect(peer, address)
        before = resume_state.seconds if resume_state else 0.0
        context.open(peers[COORDINATOR].handle if is_durable(name) else None, persisted, before)
        try:
            incarnations = {peer: address.incarnation for peer, address in peers.items()}
            channel = ReliableChannel(name, self.incarnation, incarnations, RESEND_TIMEOUT, self.job.config.window)
            node = snapshotting(Node(self.job.roles[name](), channel), self.job)
            first: list[Event] = [Started(persisted)]
            if resume_state is not None:
                restore_node(node, self._trainer, resume_state.state)
                changes = [change for change in resume_state.changes if change.peer != name]
                first = [Resumed(resume_state.seconds), *changes]
            number, seed = self._number, self.job.seed
            delays = DelayStream(self.delay, seed, number, self.incarnation) if self._trainer is not None else None
            actor = Actor(context, name, self.incarnation, node, self._trainer, delays, seed, None)
        except Exception as error:
            context.fail(name, error)
            return
        with self._lock:
            for event in (*first, *self._early):
                actor.put(event)
            self._actor = actor
        actor.thread.start()

    def deliver(self, *parts: object) -> None:
        """Receive a batch of messages from another node. Ray calls this, and so do the threads that read sockets.

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
            if isinstance(envelope.body, Stop):
                self._context.skip_delays.set()  # In a delay the worker would not read that the run ends.
            if actor is not None and isinstance(envelope.body, Ack) and not actor.node.channel.window_full:
                actor.put_ack(Received(envelope))
            else:
                self._put(Received(envelope))

    def joined(self, peer: str, address: PeerAddress) -> None:
        """Add a node to the membership: it has started, or restarted as a new incarnation."""
        self._context.connect(peer, address)
        self._put(PeerJoined(peer, address.incarnation))
        if is_durable(peer):
            # A restarted server has lost the messages that it had not persisted, so they are retransmitted at once.
            self._put(TimerFired(RESENDING))

    def lost(self, peer: str, incarnation: int) -> None:
        """Remove a crashed node from the membership."""
        self._context.disconnect(peer)
        self._put(PeerLost(peer, incarnation))

    def interrupt(self) -> None:
        """Interrupt the node: skip its injected delays, and pass the interrupt to its role.

        The driver interrupts the coordinator only, which then ends the run with the parameters that it has.
        """
        self._context.skip_delays.set()
        self._put(Interrupted())

    def heartbeat(self, longest_burst: float, sent: tuple[int, int]) -> Heartbeat:
        """Return a heartbeat, with the events since the previous one.

        Parameters
        ----------
        longest_burst : float
            Seconds of the longest burst of any worker.
        sent : tuple of int
            Messages and bytes that all nodes have sent.

        Returns
        -------
        Heartbeat
            Counters and events of this actor.
        """
        context, actor = self._context, self._actor
        context.sent = sent
        if actor is None:
            return Heartbeat(failure=context.failure, malformed=self._malformed, ready=self._ready)
        own_longest, context.longest_burst = context.longest_burst, max(longest_burst, context.longest_burst)
        channel, finished = actor.node.channel, context.finished
        return Heartbeat(
            actor.events, actor.busy, own_longest, context.sender.calls, actor.unread, channel.resent, channel.refused,
            self._malformed, dict(actor.traffic), context.failure, context.take_events(), context.take_snapshot_parts(),
            finished, True, actor.bursts, actor.updates, _delays(self.name, actor.node.role),
        )  # fmt: skip

    def store_state(self, name: str, incarnation: int, what: object) -> bool:
        """Store a server's state in this actor's state store; return whether the store has accepted it."""
        return self._store.put(name, incarnation, what)

    def stored_state(self, name: str, incarnation: int) -> object:
        """Return the stored state for a new incarnation of a server; None without one."""
        return self._store.load(name, incarnation)

    def _prepare(self) -> None:
        """Prepare the node in a separate thread: read the data, compile the kernels, and warm the trainer up."""
        context = self._context
        try:
            if self.name == COORDINATOR:
                context.evaluator = Evaluator(self.job.measure, context.evaluated, context.fail)
                context.evaluator.thread.start()
            elif self._number >= 0:
                self._trainer = self.job.make_trainer(self._number)
                # Otherwise the first burst includes compilation, and its delta has the largest staleness.
                self._trainer.warm_up(self.job.config.start)
            elif self.job.config.resident:
                deltas.warm_up()
            self._ready = True
            if self.name == COORDINATOR and self.job.config.resident:
                # The first evaluation would compile in the run. No node waits for this one, which may take long.
                self.job.measure(self.job.config.start, False)
        except BaseException as error:
            context.fail(self.name, error)

    def _put(self, event: Event) -> None:
        with self._lock:
            if self._actor is None:
                self._early.append(event)
            else:
                self._actor.put(event)


def _delays(name: str, role: Role) -> dict[str, dict[int, int]]:
    """Return how often each staleness occurred, by worker.

    A ``Counter`` in the role is about the node's own exchanges. A mapping of counters, as in a parameter server, is
    about each worker that sends to the node.
    """
    found = role.delays
    if isinstance(found, Counter):
        return {name: dict(found)}
    return {worker: dict(counts) for worker, counts in list(found.items())}
