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
from typing import Any, Protocol

import numpy as np
import ray

from hogwild.delays import Delay, named
from hogwild.errors import HogwildError
from hogwild.messaging.messages import Ack, Envelope, JoinReply
from hogwild.messaging.protocol import Emit, Evaluate, Evaluated, Finish, SnapshotPart
from hogwild.messaging.reliable_channel import Table
from hogwild.runtimes.messaging.actor import Actor, Evaluator, now
from hogwild.runtimes.messaging.injected_faults import Link
from hogwild.runtimes.ray.batching_sender import MAX_DELAY, POLL_INTERVAL, BatchingSender, Call, Unanswered
from hogwild.runtimes.ray.local_socket import SocketConnection, Unsent
from hogwild.runtimes.ray.state_replication import EVERY, StateReplicator
from hogwild.runtimes.ray.wire_codec import Parts

IDLE = 1.0  # seconds after which an idle sender thread checks for work

EmittedEvents = list[tuple[str, float, dict[str, Any]]]
"""Events for the driver: the name, the seconds since the start of the run, and further fields."""


class RemoteMethod(Protocol):
    """Method of an actor in another process."""

    def remote(self, *arguments: object) -> object:
        """Call the method; return the object reference of its result."""


class ActorHandle(Protocol):
    """Handle of a ``RayActor`` in another process, with the methods that are called from elsewhere."""

    become: RemoteMethod
    location: RemoteMethod
    begin: RemoteMethod
    deliver: RemoteMethod
    joined: RemoteMethod
    lost: RemoteMethod
    interrupt: RemoteMethod
    heartbeat: RemoteMethod
    store_state: RemoteMethod
    stored_state: RemoteMethod


@dataclass(frozen=True, slots=True)
class PeerAddress:
    """Address of another node: its incarnation, its Ray handle, and its socket if it is on the same Ray node."""

    incarnation: int
    handle: ActorHandle
    socket: str = ""  # name of its socket; empty for a node on another Ray node


class Peer:
    """Another node, as the destination of calls: by its socket if it is on the same Ray node, else by Ray."""

    def __init__(self, address: PeerAddress) -> None:
        self._handle = address.handle
        self._connection = SocketConnection(address.socket) if address.socket else None

    def call(self, parts: Parts) -> object | None:
        """Send a batch of messages; return what stands for the call, or None if there is no answer to wait for."""
        if self._connection is not None:
            try:
                return self._connection.send(parts)
            except OSError:
                self._connection = None  # the node has crashed, or else Ray reaches it
        return self._handle.deliver.remote(*parts)

    def close(self) -> None:
        """Close the connection to the node."""
        connection = self._connection
        if connection is not None:
            connection.close()


def send_batch(peer: Peer, parts: Parts) -> object | None:
    """Send a batch of messages to a node; return the call, or None if there is no answer to wait for."""
    return peer.call(parts)


def unanswered(calls: list[Any]) -> list[Any]:
    """Return the calls that are not answered yet. For a crashed actor Ray answers, once it has detected the crash."""
    of_ray = [call for call in calls if not isinstance(call, Unsent)]
    left = ray.wait(of_ray, num_returns=len(of_ray), timeout=0, fetch_local=False)[1] if of_ray else []
    if len(of_ray) == len(calls):
        return list(left)
    return [call for call in calls if (not call.sent if isinstance(call, Unsent) else call in left)]


def answered(calls: list[Any], limit: float) -> None:
    """Wait until at least one of the calls is answered, for at most ``limit`` seconds."""
    if not any(isinstance(call, Unsent) for call in calls):
        ray.wait(calls, timeout=limit, fetch_local=False)
        return
    until = now() + limit
    while now() < until and len(unanswered(calls)) == len(calls):
        time.sleep(POLL_INTERVAL)


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

    def __init__(self, name: str, incarnation: int, transport: Transport | None = None) -> None:
        self.name, self.incarnation = name, incarnation
        self.latency: Delay = named(0.0)
        self.skip_delays, self.longest_burst = threading.Event(), 0.0
        self.transport = transport or Transport()
        self.sender = BatchingSender(self.transport.call, self.transport.unanswered)
        self.replicator: StateReplicator | None = None
        self.evaluator: Evaluator | None = None
        self.sent = (0, 0)  # messages and bytes that all nodes have sent, according to the driver's last request
        self.failure = ""
        self.finished: tuple[Finish, float] | None = None
        self.began = now()
        self._events: deque[tuple[str, float, dict[str, Any]]] = deque()
        self._parts: deque[SnapshotPart] = deque()
        self._peers: dict[str, Peer] = {}
        self._collected = 0.0  # seconds of the run after which the last parameters to evaluate were there

    def open(self, store_actor: ActorHandle | None, persisted: tuple[Table, object] | None, before: float) -> None:
        """Start the sender thread, and for a server the replication of its state.

        Parameters
        ----------
        store_actor : ActorHandle or None
            The coordinator's actor, which stores the state of servers; None for all other nodes.
        persisted : tuple or None
            Table and state that the previous incarnation of a server has persisted.
        before : float
            Seconds of the run before this call.
        """
        self.began = now() - before
        if store_actor is not None:
            store = partial(_store_state, store_actor, self.name, self.incarnation)
            table = dict(persisted[0]) if persisted is not None else {}
            # Without a state, a server that restarts gets all messages again. So the first replication may wait, too.
            self.replicator = StateReplicator(store, _accepted, table, now() + EVERY)
        threading.Thread(target=self._send_loop, name="hogwild-sender", daemon=True).start()

    def connect(self, name: str, address: PeerAddress) -> None:
        """Add a node that has started, or replace one that has restarted."""
        self.disconnect(name)
        peer = self._peers[name] = Peer(address)
        self.sender.connect(name, peer)

    def disconnect(self, name: str) -> None:
        """Remove a crashed node, and drop the messages that wait for it."""
        self.sender.disconnect(name)
        peer = self._peers.pop(name, None)
        if peer is not None:
            peer.close()

    def take_events(self) -> EmittedEvents:
        """Remove and return the events since the previous call."""
        return [self._events.popleft() for _ in range(len(self._events))]

    def take_snapshot_parts(self) -> list[SnapshotPart]:
        """Remove and return the parts of snapshots since the previous call."""
        return [self._parts.popleft() for _ in range(len(self._parts))]

    def _send_loop(self) -> None:
        """Run the sender thread: send delayed messages, and replicate the state of a server."""
        pending, blocked, replicator = self.sender.pending, self.sender.blocked, self.replicator
        try:
            while True:
                pending.wait(IDLE)
                if blocked.wait(MAX_DELAY) and (calls := self.sender.awaited()):
                    self.transport.wait(calls, MAX_DELAY)
                if replicator is not None:
                    for envelope in replicator.catch_up(now()):
                        self.sender.put(envelope)
                self.sender.catch_up()
                if replicator is not None and replicator.busy:
                    pending.set()
        except BaseException as error:
            self.fail(self.name, error)

    # Interface ``ActorEnvironment``, for the actor's thread

    def deliver(self, envelope: Envelope, sent: float, due: float) -> None:
        """Queue a message for its receiver.

        A server acknowledges as persisted only the messages whose effect is replicated. It delays its reply to a
        joining worker until the replicated state includes that worker.
        """
        if self.replicator is not None and isinstance(envelope.body, Ack):
            envelope = self.replicator.limit_ack(envelope)
        if self.replicator is not None and isinstance(envelope.body, JoinReply):
            self.replicator.hold(envelope)
        else:
            self.sender.put(envelope)

    def after_reaction(self) -> None:
        """Send the messages of the reaction that has ended."""
        self.sender.after_reaction()

    def persist(self, name: str, what: object) -> None:
        """Replicate the state of a server for its next incarnation; ignore the state of other nodes."""
        if self.replicator is not None:
            self.replicator.put(what)
            self.sender.pending.set()

    def evaluate(self, actor: Actor, action: Evaluate) -> None:
        """Queue parameters for evaluation in the evaluator's thread, and note the time that they are from."""
        assert self.evaluator is not None
        self._collected = now() - self.began
        self.evaluator.put(actor, action)

    def evaluated(self, actor: Actor, action: Evaluate, figures: dict[str, float]) -> None:
        """Pass the results of an evaluation to the actor that requested it."""
        actor.put(Evaluated(action.number, figures))

    def emit(self, action: Emit) -> None:
        """Queue an event for the driver, with the time and, for an epoch, the traffic of all nodes."""
        seconds = now() - self.began
        if action.event == "epoch":
            seconds = self._collected
            action.what.update(seconds=seconds, messages=self.sent[0], bytes=self.sent[1])
        self._events.append((action.event, seconds, action.what))

    def save(self, actor: Actor, action: SnapshotPart) -> None:
        """Queue this node's part of a snapshot for the driver, which collects the parts of all nodes."""
        self._parts.append(SnapshotPart(action.number, action.what))

    def finish(self, action: Finish) -> None:
        """Record the end of the run for the next heartbeat, without the last evaluation in its seconds."""
        self.finished = action, now() - self.began if action.values is None else self._collected

    def fail(self, name: str, error: BaseException) -> None:
        """Record an error that stops this node, with the last three entries of its traceback if it is not our own."""
        trace = "" if isinstance(error, HogwildError) else "\n" + "".join(traceback.format_exception(error)[-3:])
        self.failure = f"{name} failed: {type(error).__name__}: {error}{trace}"


def _store_state(store_actor: ActorHandle, name: str, incarnation: int, what: object) -> object:
    return store_actor.store_state.remote(name, incarnation, what)


def _accepted(call: ray.ObjectRef[bool]) -> bool | None:
    """Return whether the state store has accepted a state; None as long as the store has not answered."""
    answered_calls, _ = ray.wait([call], timeout=0)
    if not answered_calls:
        return None
    try:
        return bool(ray.get(call))
    except ray.exceptions.RayError:
        return False  # the state store is in the coordinator's process, whose crash ends the run


@dataclass(eq=False, slots=True)
class Packet:
    """Call under fault injection, which is made once, twice or never."""

    pending_copies: int  # number of copies that are still to be made
    calls: list[Any] = field(default_factory=list)  # unanswered copies that were made


class FaultyTransport:
    """Transport that delays, duplicates and drops the calls of one node, as a ``Link`` specifies.

    Parameters
    ----------
    link : Link
        Latency, bandwidth, loss, duplication and reordering to inject.
    seed : sequence of int
        Seed of the random numbers.
    transport : Transport
        Transport that makes the calls.
    """

    def __init__(self, link: Link, seed: Sequence[int], transport: Transport) -> None:
        self._link, self._transport = link, transport
        self._random = np.random.default_rng(seed)
        self._uplink_free = 0.0  # time from which the uplink is free, in seconds
        self._numbers = count()
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._changed = threading.Condition()
        threading.Thread(target=self._send_loop, name="hogwild-faulty-transport", daemon=True).start()

    def call(self, handle: object, parts: Parts) -> Packet:
        """Schedule the copies of a call; return the packet that stands for the call."""
        with self._changed:
            number = next(self._numbers)
            arrivals = self._link.arrivals(self._random, 0, number)
            size = sum(part.nbytes if isinstance(part, np.ndarray) else len(part) for part in parts)
            self._uplink_free = max(self._uplink_free, now()) + size / self._link.bandwidth
            packet = Packet(len(arrivals))
            for after in arrivals:
                make: Callable[[], None] = partial(self._make_call, packet, handle, parts)
                heapq.heappush(self._later, (self._uplink_free + after, next(self._numbers), make))
            self._changed.notify()
            return packet

    def unanswered(self, packets: list[Packet]) -> list[Packet]:
        """Return the packets that are not answered yet. A lost packet counts as answered, so no caller waits for it."""
        return [packet for packet in packets if packet.pending_copies or self._unanswered_calls(packet)]

    def wait(self, packets: list[Packet], limit: float) -> None:
        """Wait until at least one of the packets is answered, for at most ``limit`` seconds."""
        until = now() + limit
        while now() < until and len(self.unanswered(packets)) == len(packets):
            time.sleep(POLL_INTERVAL)  # Ray has no reference of a delayed call, so this loop polls

    def _unanswered_calls(self, packet: Packet) -> bool:
        packet.calls = self._transport.unanswered(packet.calls) if packet.calls else []
        return bool(packet.calls)

    def _make_call(self, packet: Packet, handle: object, parts: Parts) -> None:
        call = self._transport.call(handle, parts)
        packet.calls = packet.calls if call is None else [*packet.calls, call]
        packet.pending_copies -= 1

    def _send_loop(self) -> None:
        """Make each scheduled call at its time, in the transport's thread."""
        while True:
            with self._changed:
                while not self._later or self._later[0][0] > now():
                    self._changed.wait(self._later[0][0] - now() if self._later else None)
                make = heapq.heappop(self._later)[2]
            make()
