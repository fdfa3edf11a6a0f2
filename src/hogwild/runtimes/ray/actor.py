"""A seat: the process in which one life of a participant runs."""

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
from hogwild.messaging.actions import Finish, SnapshotPart
from hogwild.messaging.events import Event, Interrupted, PeerJoined, PeerLost, Received, Resumed, Started, TimerFired
from hogwild.messaging.job import LocalTrainer, MessageJob, Traffic
from hogwild.messaging.messages import COORDINATOR, Ack, number_of
from hogwild.messaging.node import Node
from hogwild.messaging.reliable_channel import RESEND as RESENDING
from hogwild.messaging.reliable_channel import ReliableChannel, is_durable
from hogwild.runtimes.messaging.actor import Actor, Evaluator
from hogwild.runtimes.messaging.network_model import Link
from hogwild.runtimes.messaging.snapshot_collector import restore_node, snapshotting
from hogwild.runtimes.ray.actor_context import ActorContext, News, Transport
from hogwild.runtimes.ray.fault_injection import FaultyTransport
from hogwild.runtimes.ray.state_store import StateStore
from hogwild.runtimes.ray.wire_codec import decode_envelopes

PATIENCE = 1.0  # seconds after which a message without a receipt is sent again
MOST_UNREAD = 8192  # messages; more are not taken in: they are sent again

Peers = dict[str, tuple[int, Any]]
"""Who is there: the life and the handle of each."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What a seat says when it is asked whether it is alive."""

    events: int = 0
    busy: float = 0.0  # seconds of bursts
    longest: float = 0.0  # of them
    calls: int = 0
    unread: int = 0
    resent: int = 0
    refused: int = 0  # messages from lives that are over, or for such
    malformed: int = 0  # calls whose bytes are no messages
    traffic: dict[str, Traffic] = field(default_factory=dict)
    failure: str = ""
    news: News = field(default_factory=list)
    saves: list[SnapshotPart] = field(default_factory=list)
    finished: tuple[Finish, float] | None = None
    ready: bool = False  # whether it could begin
    bursts: int = 0
    updates: int = 0
    delays: dict[str, dict[int, int]] = field(default_factory=dict)  # that it noticed, of each worker's changes


@dataclass(frozen=True, slots=True)
class ResumeState:
    """What an earlier sitting has left for somebody: how long it was, what it knew, and who has come and gone."""

    seconds: float
    known: dict[str, Any]
    news: list[PeerLost | PeerJoined]


@dataclass(frozen=True, slots=True)
class ActorLocation:
    """Where a process is. What ``created`` it tells it from a later one of the same number."""

    node: str
    machine: str
    process: int
    created: float


def here() -> str:
    """What tells this machine, as far as processes on it have different numbers, from others."""
    boot, space = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")
    if not boot.exists() or not space.exists():
        return platform.node()
    return f"{boot.read_text().strip()} {space.readlink()}"


class RayActor:
    """Made an actor of by Ray.

    Its methods are called one after the other and return at once: what takes time is done by threads of its own.
    """

    def __init__(
        self, name: str, life: int, job: MessageJob, slow: Mapping[int, float], link: Link | None = None
    ) -> None:
        self.job, self.slow, self.link = job, slow, link
        self.become(name, life)
        self._vault = StateStore()
        self._actor: Actor | None = None
        self._early: list[Event] = []  # what came before it had begun
        self._number = number_of(name) if name.startswith("worker") else -1
        self._learner: LocalTrainer | None = None
        self._ready = False
        self._malformed = 0
        threading.Thread(target=self._prepare, name="hogwild-prepares", daemon=True).start()

    def become(self, name: str, life: int) -> None:
        """Be somebody; one that has stood by, somebody else from now on."""
        self.name, self.life = name, life
        lines = None
        if self.link is not None:
            rough = FaultyTransport(self.link, [self.job.seed, life, *name.encode()], Transport())
            lines = Transport(rough.call, rough.unanswered, rough.wait)
        self._desk = ActorContext(name, life, lines)

    def where(self) -> ActorLocation:
        """The node and the process it is in."""
        me = psutil.Process()
        return ActorLocation(ray.get_runtime_context().get_node_id(), here(), me.pid, me.create_time())

    def begin(self, peers: Peers, kept: Any, sitting: ResumeState | None = None) -> None:
        """Take part, together with these: after a crash with what was kept, in a later sitting with what was known."""
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
        """Take in what others say."""
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
        """Somebody is there."""
        self._desk.outbox.connect(peer, handle)
        self._put(PeerJoined(peer, life))
        if is_durable(peer):  # it gets what it has not kept at once
            self._put(TimerFired(RESENDING))

    def lost(self, peer: str, life: int) -> None:
        """Somebody is gone."""
        self._desk.outbox.disconnect(peer)
        self._put(PeerLost(peer, life))

    def interrupt(self) -> None:
        """Somebody wants the run to end soon."""
        self._desk.hurry.set()
        self._put(Interrupted())

    def pulse(self, longest: float, sent: tuple[int, int]) -> Heartbeat:
        """Say that it is alive, and what is new.

        ``longest`` is the longest burst of anybody, ``sent`` the messages and bytes of all.
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
        """Put something into the vault; return whether it was taken."""
        return self._vault.keep(name, life, what)

    def kept(self, name: str, life: int) -> Any:
        """What is in the vault for a life that begins."""
        return self._vault.kept(name, life)

    def _prepare(self) -> None:
        """Make what takes long, in a thread of its own: read, compile, rehearse."""
        desk = self._desk
        try:
            if self.name == COORDINATOR:
                desk.measurer = Evaluator(self.job.measure, desk.measured, desk.fail)
                desk.measurer.thread.start()
            elif self._number >= 0:
                self._learner = self.job.learner(self._number)
                if hasattr(self._learner, "rehearse"):  # else its first change would be older than all others
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
    """How late changes came, as far as a role counts that: its own, or those of each worker."""
    found = getattr(role, "delays", {})
    if isinstance(found, Counter):
        return {name: dict(found)}
    return {worker: dict(counts) for worker, counts in list(found.items())}
