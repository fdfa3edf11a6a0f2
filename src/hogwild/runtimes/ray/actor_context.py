"""Environment of a node in a Ray actor: transport, also with injected faults, replication, evaluation and events."""

from __future__ import annotations

import heapq
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import ray

from hogwild.delays import Delay, named
from hogwild.messaging.messages import Ack, Envelope, JoinReply
from hogwild.messaging.protocol import Emit, Evaluate, Evaluated, Finish, SnapshotPart
from hogwild.runtimes.messaging.actor import Actor, Evaluator, now
from hogwild.runtimes.messaging.faults import Link
from hogwild.runtimes.ray.batching_sender import A_WHILE, LOOK, BatchingSender, Call, Unanswered
from hogwild.runtimes.ray.state_replication import StateReplicator
from hogwild.runtimes.ray.wire_codec import Parts

IDLE = 1.0  # seconds after which an idle sender thread checks for work

News = list[tuple[str, float, dict[str, Any]]]
"""Events for the driver: the name, the seconds since the start of the run, and further fields."""


def send_batch(handle: Any, parts: Parts) -> Any:
    """Send a batch of messages to an actor; return the object reference of the call."""
    return handle.deliver.remote(*parts)


def unanswered(calls: list[Any]) -> list[Any]:
    """Return the calls that are not answered yet. For a crashed actor Ray answers, once it has detected the crash."""
    left: list[Any] = ray.wait(calls, num_returns=len(calls), timeout=0, fetch_local=False)[1]
    return left


def answered(calls: list[Any], limit: float) -> None:
    """Wait until at least one of the calls is answered, for at most ``limit`` seconds."""
    ray.wait(calls, timeout=limit, fetch_local=False)


@dataclass(frozen=True, slots=True)
class Transport:
    """Transport of calls between actors: make a call, list unanswered calls, and wait for an answer."""

    call: Call = send_batch
    unanswered: Unanswered = unanswered
    wait: Callable[[list[Any], float], None] = answered


class ActorContext:
    """Executes the actions of a node in a Ray actor.

    Messages go to other actors. The state of a server goes to the state store in the coordinator's process. Events and
    parts of snapshots wait until the driver requests a heartbeat.
    """

    def __init__(self, name: str, life: int, lines: Transport | None = None) -> None:
        self.name, self.life = name, life
        self.latency: Delay = named(0.0)
        self.hurry, self.longest = threading.Event(), 0.0
        self.lines = lines or Transport()
        self.outbox = BatchingSender(self.lines.call, self.lines.unanswered)
        self.keeping: StateReplicator | None = None
        self.measurer: Evaluator | None = None
        self.sent = (0, 0)  # messages and bytes that all nodes have sent, according to the driver's last request
        self.failure = ""
        self.finished: tuple[Finish, float] | None = None
        self.began = now()
        self._news: deque[tuple[str, float, dict[str, Any]]] = deque()
        self._saves: deque[SnapshotPart] = deque()

    def open(self, vault: Any, kept: Any, before: float) -> None:
        """Start the sender thread, and for a server the replication of its state.

        Parameters
        ----------
        vault : ray.actor.ActorHandle or None
            The coordinator's actor, which stores the state of servers; None for all other nodes.
        kept : tuple or None
            Table and state that the previous incarnation of a server has persisted.
        before : float
            Seconds of the run before this call.
        """
        self.began = now() - before
        if vault is not None:
            store = partial(_keep, vault, self.name, self.life)
            self.keeping = StateReplicator(store, _taken, dict(kept[0]) if kept is not None else {})
        threading.Thread(target=self._clerk, name="hogwild-clerk", daemon=True).start()

    def news(self) -> News:
        """Remove and return the events since the previous call."""
        return [self._news.popleft() for _ in range(len(self._news))]

    def saves(self) -> list[SnapshotPart]:
        """Remove and return the parts of snapshots since the previous call."""
        return [self._saves.popleft() for _ in range(len(self._saves))]

    def _clerk(self) -> None:
        """Run the sender thread: send delayed messages, and replicate the state of a server."""
        late, stuck, keeping = self.outbox.late, self.outbox.stuck, self.keeping
        try:
            while True:
                late.wait(IDLE)
                if stuck.wait(A_WHILE) and (calls := self.outbox.awaited()):
                    self.lines.wait(calls, A_WHILE)
                if keeping is not None:
                    for envelope in keeping.catch_up(now()):
                        self.outbox.put(envelope)
                self.outbox.catch_up()
                if keeping is not None and keeping.busy:
                    late.set()
        except BaseException as error:
            self.fail(self.name, error)

    # Interface ``ActorEnvironment``, for the actor's thread

    def deliver(self, envelope: Envelope, sent: float, due: float) -> None:
        """Queue a message for its receiver.

        A server acknowledges as persisted only the messages whose effect is replicated. It delays its reply to a
        joining worker until the replicated state includes that worker.
        """
        if self.keeping is not None and isinstance(envelope.body, Ack):
            envelope = self.keeping.honest(envelope)
        if self.keeping is not None and isinstance(envelope.body, JoinReply):
            self.keeping.hold(envelope)
        else:
            self.outbox.put(envelope)

    def turned(self) -> None:
        """Send the messages of the reaction that has ended."""
        self.outbox.turned()

    def keep(self, name: str, what: Any) -> None:
        """Replicate the state of a server for its next incarnation; ignore the state of other nodes."""
        if self.keeping is not None:
            self.keeping.keep(what)
            self.outbox.late.set()

    def measure(self, actor: Actor, action: Evaluate) -> None:
        """Queue parameters for evaluation in the evaluator's thread."""
        assert self.measurer is not None
        self.measurer.put(actor, action)

    def measured(self, actor: Actor, action: Evaluate, figures: dict[str, float]) -> None:
        """Pass the results of an evaluation to the actor that requested it."""
        actor.put(Evaluated(action.number, figures))

    def tell(self, action: Emit) -> None:
        """Queue an event for the driver, with the time and, for an epoch, the traffic of all nodes."""
        seconds = now() - self.began
        if action.event == "epoch":
            action.what.update(seconds=seconds, messages=self.sent[0], bytes=self.sent[1])
        self._news.append((action.event, seconds, action.what))

    def save(self, actor: Actor, action: SnapshotPart) -> None:
        """Queue this node's part of a snapshot for the driver, which collects the parts of all nodes."""
        self._saves.append(SnapshotPart(action.number, action.what))

    def finish(self, action: Finish) -> None:
        """Record the end of the run for the next heartbeat."""
        self.finished = action, now() - self.began

    def fail(self, name: str, error: BaseException) -> None:
        """Record an error that stops this node, with the last three entries of its traceback."""
        told = "".join(traceback.format_exception(error)[-3:])
        self.failure = f"{name} failed: {type(error).__name__}: {error}\n{told}"


def _keep(vault: Any, name: str, life: int, what: Any) -> Any:
    return vault.keep.remote(name, life, what)


def _taken(call: Any) -> bool | None:
    """Return whether the state store has accepted a state; None as long as the store has not answered."""
    done, _ = ray.wait([call], timeout=0)
    if not done:
        return None
    try:
        return bool(ray.get(call))
    except ray.exceptions.RayError:
        return False  # the state store is in the coordinator's process, whose crash ends the run


@dataclass(eq=False, slots=True)
class Packet:
    """Call under fault injection, which is made once, twice or never."""

    ahead: int  # number of copies that are still to be made
    made: list[Any] = field(default_factory=list)  # unanswered copies that were made


class FaultyTransport:
    """Transport that delays, duplicates and drops the calls of one node, as a ``Link`` specifies.

    Parameters
    ----------
    link : Link
        Latency, bandwidth, loss, duplication and reordering to inject.
    seed : sequence of int
        Seed of the random numbers.
    lines : Transport
        Transport that makes the calls.
    """

    def __init__(self, link: Link, seed: Sequence[int], lines: Transport) -> None:
        self._link, self._lines = link, lines
        self._random = np.random.default_rng(seed)
        self._free = 0.0  # time from which the uplink is free, in seconds
        self._numbers = count()
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._changed = threading.Condition()
        threading.Thread(target=self._carry, name="hogwild-rough", daemon=True).start()

    def call(self, handle: Any, parts: Parts) -> Packet:
        """Schedule the copies of a call; return the packet that stands for the call."""
        with self._changed:
            number = next(self._numbers)
            arrivals = self._link.arrivals(self._random, 0, number)
            size = sum(part.nbytes if isinstance(part, np.ndarray) else len(part) for part in parts)
            self._free = max(self._free, now()) + size / self._link.bandwidth
            packet = Packet(len(arrivals))
            for after in arrivals:
                make: Callable[[], None] = partial(self._make, packet, handle, parts)
                heapq.heappush(self._later, (self._free + after, next(self._numbers), make))
            self._changed.notify()
            return packet

    def unanswered(self, packets: list[Packet]) -> list[Packet]:
        """Return the packets that are not answered yet. A lost packet counts as answered, so no caller waits for it."""
        return [packet for packet in packets if packet.ahead or self._unanswered_calls(packet)]

    def wait(self, packets: list[Packet], limit: float) -> None:
        """Wait until at least one of the packets is answered, for at most ``limit`` seconds."""
        until = now() + limit
        while now() < until and len(self.unanswered(packets)) == len(packets):
            time.sleep(LOOK)  # Ray has no reference of a delayed call, so this loop polls

    def _unanswered_calls(self, packet: Packet) -> bool:
        packet.made = self._lines.unanswered(packet.made) if packet.made else []
        return bool(packet.made)

    def _make(self, packet: Packet, handle: Any, parts: Parts) -> None:
        packet.made = [*packet.made, self._lines.call(handle, parts)]
        packet.ahead -= 1

    def _carry(self) -> None:
        """Make each scheduled call at its time, in the transport's thread."""
        while True:
            with self._changed:
                while not self._later or self._later[0][0] > now():
                    self._changed.wait(self._later[0][0] - now() if self._later else None)
                make = heapq.heappop(self._later)[2]
            make()
