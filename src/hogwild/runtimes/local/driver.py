"""Driver of a local run: starts nodes on threads, delivers their messages, injects crashes, and ends the run."""

from __future__ import annotations

import heapq
import itertools
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hogwild.delays import Delay, DelayStream, named
from hogwild.errors import WorkerError
from hogwild.messaging.job import MessageJob, Outcome, Traffic
from hogwild.messaging.messages import COORDINATOR, Ack, Envelope, Stop, is_worker, number_of, worker
from hogwild.messaging.node import Node
from hogwild.messaging.protocol import (
    Emit,
    Evaluate,
    Evaluated,
    Event,
    Finish,
    Interrupted,
    PeerJoined,
    PeerLost,
    Received,
    Resumed,
    SnapshotPart,
    Started,
)
from hogwild.messaging.reliable_channel import ReliableChannel
from hogwild.messaging.trace import NodeTrace, Trace
from hogwild.runtimes.messaging.actor import Actor, Evaluator, now
from hogwild.runtimes.messaging.injected_faults import Crash, planned
from hogwild.runtimes.messaging.snapshot_collector import (
    SnapshotCollector,
    incarnations_of,
    membership_events,
    restore_node,
    snapshotting,
)

if TYPE_CHECKING:
    from hogwild.runtimes.local import Local

TICK = 0.05  # seconds between two checks for Ctrl-C
# Seconds without an acknowledgement after which a message is retransmitted. Within a process, only a crash of the
# receiver loses messages.
RESEND = 1.0
CLOSING = 60.0  # seconds that a burst may continue after Ctrl-C, and again after the end of the run


class LocalDriver:
    """Driver of one run on threads.

    Each node reacts and trains in its own thread. Everything else happens in the thread that calls ``play``.
    """

    def __init__(self, runtime: Local, job: MessageJob) -> None:
        self.runtime, self.job = runtime, job
        self.latency: Delay = named(runtime.latency)
        self.skip_delays, self.longest_burst = threading.Event(), 0.0
        self.actors: dict[str, Actor] = {}  # actors of the running nodes
        self.crashed_actors: list[Actor] = []  # actors of crashed incarnations, whose counters still belong to the run
        self.starts: dict[str, int] = defaultdict(int)  # number of starts of each node so far
        self.persisted: dict[str, Any] = {}  # state that each node has persisted for its next incarnation
        self.running_seconds: dict[str, float] = defaultdict(float)  # seconds that each node has run
        self.crashes = 0
        self.node_traces: dict[str, NodeTrace] = {}
        self.evaluator = Evaluator(job.measure, self._evaluated, self.fail)
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._planned: list[tuple[float, int, Callable[[], None]]] = []
        self._collector = SnapshotCollector()
        self._numbers = itertools.count()
        self._finish: tuple[Finish, float] | None = None
        self._began = now()
        self._collected = 0.0  # seconds of the run after which the last parameters to evaluate were there

    def play(self) -> Outcome:
        """Run until a node finishes the run or fails, then terminate all threads; return the outcome."""
        try:
            self._start_all()
            self._supervise()
        finally:
            left = self._close()
        if left:
            self.job.emit("unfinished threads", seconds=now() - self._began, nodes=left)
        return self._outcome()

    # Methods that any thread may call

    def deliver(self, envelope: Envelope, sent: float, due: float) -> None:
        """Deliver a message to its receiver, if the receiver is running.

        An acknowledgement without latency does not wake the receiver, unless the receiver waits for acknowledgements.
        The message that ends the run also ends all delays, in which workers would not read it.
        """
        if isinstance(envelope.body, Stop):
            self.skip_delays.set()
        actor = self.actors.get(envelope.to)
        if actor is None:
            return
        if due == sent and isinstance(envelope.body, Ack) and not actor.node.channel.window_full:
            actor.put_ack(Received(envelope))
        else:
            actor.put(Received(envelope), sent, due)

    def after_reaction(self) -> None:
        """Do nothing at the end of a reaction, because ``deliver`` has already delivered all its messages."""

    def persist(self, name: str, what: object) -> None:
        """Store the state of a node for its next incarnation. The caller holds the lock of the node's actor."""
        self.persisted[name] = what

    def evaluate(self, actor: Actor, action: Evaluate) -> None:
        """Queue parameters for evaluation in the evaluator's thread, and note the time that they are from."""
        self._collected = now() - self._began
        self.evaluator.put(actor, action)

    def _evaluated(self, actor: Actor, action: Evaluate, figures: dict[str, float]) -> None:
        actor.put(Evaluated(action.number, figures))

    def emit(self, action: Emit) -> None:
        """Queue an event with its present time and traffic; the thread of ``play`` records it and calls callbacks."""
        seconds = now() - self._began
        if action.event == "epoch":
            seconds = self._collected
            sent = self._traffic().values()
            action.what.update(
                seconds=seconds, messages=sum(each.messages for each in sent), bytes=sum(each.bytes for each in sent)
            )
        what = {name: value for name, value in action.what.items() if name != "seconds"}
        self._calls.put(partial(self.job.emit, action.event, seconds=seconds, values=action.values, **what))

    def save(self, actor: Actor, action: SnapshotPart) -> None:
        """Queue a node's part of a snapshot; the thread of ``play`` collects the parts of all nodes."""
        self._calls.put(partial(self._saved, actor, action))

    def finish(self, action: Finish) -> None:
        """Queue the end of the run, without the last evaluation in its seconds."""
        seconds = now() - self._began if action.values is None else self._collected
        self._calls.put(partial(self._finished, action, seconds))

    def fail(self, name: str, error: BaseException) -> None:
        """Queue an error that stops a node, and with it the run."""
        self._calls.put(partial(self._failed, name, error))

    # Methods of the thread that calls ``play``

    def _finished(self, action: Finish, seconds: float) -> None:
        self._finish = action, seconds

    def _saved(self, actor: Actor, action: SnapshotPart) -> None:
        if self.actors.get(actor.name) is actor and self.job.save is not None:
            seconds = now() - self._began
            snapshot = self._collector.add(actor.name, action, self.starts, set(self.actors), seconds)
            if snapshot is not None:
                self.job.save(snapshot)

    def _failed(self, name: str, error: BaseException) -> None:
        raise WorkerError(f"{name} failed: {type(error).__name__}: {error}") from error

    def _start_all(self) -> None:
        join_times = {worker(number): at for number, at in self.runtime.join_times.items()}
        snapshot = self.job.resumed
        first = {name: 0 for name in self.job.roles if name not in join_times}
        incarnations = first if snapshot is None else incarnations_of(snapshot)
        before = 0.0 if snapshot is None else snapshot["seconds"]
        self.starts.update(incarnations if snapshot is None else snapshot["starts"] | incarnations)
        for name in incarnations:
            self._create_actor(name, incarnations)
        faults = planned(self.runtime.faults, self.job.roles, np.random.default_rng([self.job.seed, 3]))
        for fault in faults:
            if fault.at >= before:  # a resumed run skips the crashes before its snapshot
                self._plan(fault.at, partial(self._crash, fault))
        for name in self.job.roles:
            if name not in incarnations:
                self._plan(max(before, join_times.get(name, 0.0)), partial(self._start, name))
        self._began = now() - before
        self.evaluator.thread.start()
        for actor in self.actors.values():
            if snapshot is None:
                self._launch(actor, Started())
            else:
                restore_node(actor.node, actor.trainer, snapshot["nodes"][actor.name])
                self._launch(actor, Resumed(before))
        for change in [] if snapshot is None else membership_events(snapshot):
            self._broadcast(change)

    def _supervise(self) -> None:
        interrupted_at: float | None = None  # when the coordinator was sent the interrupt
        while self._finish is None:
            call = self._next()
            if call is not None:
                call()
            while self._planned and self._planned[0][0] <= now() - self._began and self._finish is None:
                heapq.heappop(self._planned)[2]()
            if interrupted_at is None and self.job.interrupted():
                interrupted_at = now()
                self.skip_delays.set()
                self.actors[COORDINATOR].put(Interrupted())
            elif interrupted_at is not None and now() - interrupted_at > CLOSING:
                self._finished(Finish(None, "interrupted"), now() - self._began)

    def _next(self) -> Callable[[], None] | None:
        """Return the next queued call; None after ``TICK`` seconds, or when a planned call is due."""
        left = self._planned[0][0] - (now() - self._began) if self._planned else TICK
        try:
            return self._calls.get(timeout=min(TICK, max(1e-4, left)))
        except queue.Empty:
            return None

    def _plan(self, at: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._planned, (at, next(self._numbers), what))

    # Start and crash of nodes

    def _create_actor(self, name: str, incarnations: dict[str, int]) -> Actor:
        incarnation = self.starts[name]
        self.starts[name] += 1
        others = {peer: incarnation for peer, incarnation in incarnations.items() if peer != name}
        channel = ReliableChannel(name, incarnation, others, RESEND, self.job.config.window)
        node = snapshotting(Node(self.job.roles[name](), channel), self.job)
        trains = is_worker(name)
        number = number_of(name) if trains else -1
        node_trace = self.node_traces.setdefault(name, NodeTrace()) if self.runtime.record else None
        actor = self.actors[name] = Actor(
            self, name, incarnation, node, self.job.make_trainer(number) if trains else None,
            DelayStream(self.runtime.delay, self.job.seed, number, incarnation) if trains else None, self.job.seed,
            node_trace,
        )  # fmt: skip
        return actor

    def _launch(self, actor: Actor, first_event: Event) -> None:
        actor.since = now()
        if actor.node_trace is not None:
            actor.node_trace.starts.append(actor.since - self._began)
        actor.put(first_event)
        actor.thread.start()

    def _start(self, name: str) -> None:
        """Start a node that joins late or restarts, and inform all other nodes."""
        if name in self.actors:
            return
        incarnations = {peer: actor.incarnation for peer, actor in self.actors.items()}
        actor = self._create_actor(name, incarnations)
        self._collector.discard()
        self._launch(actor, Started(self.persisted.get(name)))
        self._broadcast(PeerJoined(name, actor.incarnation))

    def _crash(self, fault: Crash) -> None:
        name = fault.who
        if name not in self.actors:
            return
        self.crashes += 1
        if name == COORDINATOR:
            self._finished(Finish(None, "the coordinator crashed"), now() - self._began)
            return
        self._collector.discard()
        actor = self.actors[name]
        with actor.lock:  # a crash between two reactions keeps sent messages and persisted state consistent
            del self.actors[name]
            actor.end()
        self.crashed_actors.append(actor)
        self.running_seconds[name] += now() - actor.since
        at = now() - self._began
        self._plan(at + self.runtime.detection_delay, partial(self._broadcast, PeerLost(name, actor.incarnation)))
        if fault.back_after is not None:
            self._plan(at + fault.back_after, partial(self._start, name))

    def _broadcast(self, change: PeerLost | PeerJoined) -> None:
        for actor in self.actors.values():
            if actor.name != change.peer:
                actor.put(change)

    # Shutdown and outcome

    def _close(self) -> list[str]:
        """Terminate all threads; return the names of the threads that still run after ``CLOSING`` seconds."""
        self.skip_delays.set()
        self.evaluator.end()
        for actor in self.actors.values():
            actor.end()
        threads = [actor.thread for actor in (*self.crashed_actors, *self.actors.values())] + [self.evaluator.thread]
        until = time.monotonic() + CLOSING
        for thread in threads:
            if thread.ident is not None:
                thread.join(max(0.0, until - time.monotonic()))
        return [thread.name for thread in threads if thread.is_alive()]

    def _traffic(self) -> dict[str, Traffic]:
        """Return the traffic of all nodes so far, by kind of message."""
        traffic: dict[str, Traffic] = defaultdict(Traffic)
        for actor in (*self.crashed_actors, *list(self.actors.values())):
            for kind, each in list(actor.traffic.items()):
                total = traffic[kind]
                total.messages += each.messages
                total.bytes += each.bytes
                total.receipts += each.receipts
        return traffic

    def _outcome(self) -> Outcome:
        assert self._finish is not None
        action, seconds = self._finish
        actors = [*self.crashed_actors, *self.actors.values()]
        traffic: dict[str, Traffic] = self._traffic()
        busy: dict[str, float] = defaultdict(float)
        traffic["all"].resent = sum(actor.node.channel.resent for actor in actors)
        for actor in actors:
            if actor.trainer is not None:
                busy[actor.name] += actor.busy
        for name, actor in self.actors.items():
            self.running_seconds[name] += max(0.0, self._began + seconds - actor.since)
        running_seconds = {name: each for name, each in self.running_seconds.items() if is_worker(name)}
        more = {"events": sum(actor.events for actor in actors), "crashes": self.crashes}
        return Outcome(
            action.values, action.reason, action.figures.get("record", {}), action.figures.get("stopped", {}), seconds,
            dict(traffic), dict(busy), running_seconds, more, Trace(self.node_traces) if self.runtime.record else None,
        )  # fmt: skip
