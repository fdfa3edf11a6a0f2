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

from hogwild.delays import Delay, named
from hogwild.errors import WorkerError
from hogwild.messaging.job import MessageJob, Outcome, Traffic
from hogwild.messaging.messages import COORDINATOR, Ack, Envelope, number_of, worker
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
from hogwild.runtimes.messaging.faults import Crash, planned
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
        self.hurry, self.longest = threading.Event(), 0.0
        self.actors: dict[str, Actor] = {}  # actors of the running nodes
        self.before: list[Actor] = []  # actors of crashed incarnations, whose counters still belong to the run
        self.births: dict[str, int] = defaultdict(int)  # number of incarnations of each node so far
        self.kept: dict[str, Any] = {}  # state that each node has persisted for its next incarnation
        self.alive: dict[str, float] = defaultdict(float)  # seconds that each node has run
        self.crashes = 0
        self.diaries: dict[str, NodeTrace] = {}
        self.measurer = Evaluator(job.measure, self._measured, self.fail)
        self._news: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._plans: list[tuple[float, int, Callable[[], None]]] = []
        self._gathering = SnapshotCollector()
        self._numbers = itertools.count()
        self._finish: tuple[Finish, float] | None = None
        self._began = now()

    def play(self) -> Outcome:
        """Run until a node finishes the run or fails, then terminate all threads; return the outcome."""
        try:
            self._open()
            self._attend()
        finally:
            left = self._close()
        if left:
            self.job.tell("left behind", seconds=now() - self._began, participants=left)
        return self._outcome()

    # Methods that any thread may call

    def deliver(self, envelope: Envelope, sent: float, due: float) -> None:
        """Deliver a message to its receiver, if the receiver is running.

        An acknowledgement without latency does not wake the receiver, unless the receiver waits for acknowledgements.
        """
        actor = self.actors.get(envelope.to)
        if actor is None:
            return
        if due == sent and isinstance(envelope.body, Ack) and not actor.participant.post.crowded:
            actor.receipt(Received(envelope))
        else:
            actor.put(Received(envelope), sent, due)

    def turned(self) -> None:
        """Do nothing at the end of a reaction, because ``deliver`` has already delivered all its messages."""

    def keep(self, name: str, what: Any) -> None:
        """Store the state of a node for its next incarnation. The caller holds the lock of the node's actor."""
        self.kept[name] = what

    def measure(self, actor: Actor, action: Evaluate) -> None:
        """Queue parameters for evaluation in the evaluator's thread."""
        self.measurer.put(actor, action)

    def _measured(self, actor: Actor, action: Evaluate, figures: dict[str, float]) -> None:
        actor.put(Evaluated(action.number, figures))

    def tell(self, action: Emit) -> None:
        """Queue an event with its present time and traffic; the thread of ``play`` records it and calls callbacks."""
        seconds = now() - self._began
        if action.event == "epoch":
            sent = self._traffic().values()
            action.what.update(
                seconds=seconds, messages=sum(each.messages for each in sent), bytes=sum(each.bytes for each in sent)
            )
        what = {name: value for name, value in action.what.items() if name != "seconds"}
        self._news.put(partial(self.job.tell, action.event, seconds=seconds, **what))

    def save(self, actor: Actor, action: SnapshotPart) -> None:
        """Queue a node's part of a snapshot; the thread of ``play`` collects the parts of all nodes."""
        self._news.put(partial(self._saved, actor, action))

    def finish(self, action: Finish) -> None:
        """Queue the end of the run."""
        self._news.put(partial(self._finished, action, now() - self._began))

    def fail(self, name: str, error: BaseException) -> None:
        """Queue an error that stops a node, and with it the run."""
        self._news.put(partial(self._failed, name, error))

    # Methods of the thread that calls ``play``

    def _finished(self, action: Finish, seconds: float) -> None:
        self._finish = action, seconds

    def _saved(self, actor: Actor, action: SnapshotPart) -> None:
        if self.actors.get(actor.name) is actor and self.job.save is not None:
            seconds = now() - self._began
            cut = self._gathering.add(actor.name, action, self.births, set(self.actors), seconds)
            if cut is not None:
                self.job.save(cut)

    def _failed(self, name: str, error: BaseException) -> None:
        raise WorkerError(f"{name} failed: {type(error).__name__}: {error}") from error

    def _open(self) -> None:
        late = {worker(number): at for number, at in self.runtime.join_times.items()}
        cut = self.job.resumed
        there = {name: 0 for name in self.job.roles if name not in late} if cut is None else incarnations_of(cut)
        before = 0.0 if cut is None else cut["seconds"]
        self.births.update(there if cut is None else cut["births"] | there)
        for name in there:
            self._hire(name, there)
        faults = planned(self.runtime.faults, self.job.roles, np.random.default_rng([self.job.seed, 3]))
        for fault in faults:
            if fault.at >= before:  # a resumed run skips the crashes before its snapshot
                self._plan(fault.at, partial(self._crash, fault))
        for name in self.job.roles:
            if name not in there:
                self._plan(max(before, late.get(name, 0.0)), partial(self._start, name))
        self._began = now() - before
        self.measurer.thread.start()
        for actor in self.actors.values():
            if cut is None:
                self._launch(actor, Started())
            else:
                restore_node(actor.participant, actor.learner, cut["people"][actor.name])
                self._launch(actor, Resumed(before))
        for change in [] if cut is None else membership_events(cut):
            self._spread(change)

    def _attend(self) -> None:
        told: float | None = None  # when the coordinator was sent the interrupt
        while self._finish is None:
            news = self._next()
            if news is not None:
                news()
            while self._plans and self._plans[0][0] <= now() - self._began and self._finish is None:
                heapq.heappop(self._plans)[2]()
            if told is None and self.job.interrupted():
                told = now()
                self.hurry.set()
                self.actors[COORDINATOR].put(Interrupted())
            elif told is not None and now() - told > CLOSING:
                self._finished(Finish(None, "interrupted"), now() - self._began)

    def _next(self) -> Callable[[], None] | None:
        """Return the next queued call; None after ``TICK`` seconds, or when a planned call is due."""
        left = self._plans[0][0] - (now() - self._began) if self._plans else TICK
        try:
            return self._news.get(timeout=min(TICK, max(1e-4, left)))
        except queue.Empty:
            return None

    def _plan(self, at: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._plans, (at, next(self._numbers), what))

    # Start and crash of nodes

    def _hire(self, name: str, lives: dict[str, int]) -> Actor:
        life = self.births[name]
        self.births[name] += 1
        others = {peer: incarnation for peer, incarnation in lives.items() if peer != name}
        participant = snapshotting(Node(self.job.roles[name](), ReliableChannel(name, life, others, RESEND)), self.job)
        works = name.startswith("worker")
        number = number_of(name) if works else -1
        diary = self.diaries.setdefault(name, NodeTrace()) if self.runtime.record else None
        actor = self.actors[name] = Actor(
            self, name, life, participant, self.job.learner(number) if works else None,
            self.runtime.extra_seconds.get(number, 0.0), self.job.seed, diary,
        )  # fmt: skip
        return actor

    def _launch(self, actor: Actor, begins: Event) -> None:
        actor.since = now()
        if actor.diary is not None:
            actor.diary.starts.append(actor.since - self._began)
        actor.put(begins)
        actor.thread.start()

    def _start(self, name: str) -> None:
        """Start a node that joins late or restarts, and inform all other nodes."""
        if name in self.actors:
            return
        lives = {peer: actor.life for peer, actor in self.actors.items()}
        actor = self._hire(name, lives)
        self._gathering.disturb()
        self._launch(actor, Started(self.kept.get(name)))
        self._spread(PeerJoined(name, actor.life))

    def _crash(self, fault: Crash) -> None:
        name = fault.who
        if name not in self.actors:
            return
        self.crashes += 1
        if name == COORDINATOR:
            self._finished(Finish(None, "the coordinator crashed"), now() - self._began)
            return
        self._gathering.disturb()
        actor = self.actors[name]
        with actor.lock:  # a crash between two reactions keeps sent messages and persisted state consistent
            del self.actors[name]
            actor.end()
        self.before.append(actor)
        self.alive[name] += now() - actor.since
        at = now() - self._began
        self._plan(at + self.runtime.detection_delay, partial(self._spread, PeerLost(name, actor.life)))
        if fault.back_after is not None:
            self._plan(at + fault.back_after, partial(self._start, name))

    def _spread(self, change: PeerLost | PeerJoined) -> None:
        for actor in self.actors.values():
            if actor.name != change.peer:
                actor.put(change)

    # Shutdown and outcome

    def _close(self) -> list[str]:
        """Terminate all threads; return the names of the threads that still run after ``CLOSING`` seconds."""
        self.hurry.set()
        self.measurer.end()
        for actor in self.actors.values():
            actor.end()
        threads = [actor.thread for actor in (*self.before, *self.actors.values())] + [self.measurer.thread]
        until = time.monotonic() + CLOSING
        for thread in threads:
            if thread.ident is not None:
                thread.join(max(0.0, until - time.monotonic()))
        return [thread.name for thread in threads if thread.is_alive()]

    def _traffic(self) -> dict[str, Traffic]:
        """Return the traffic of all nodes so far, by kind of message."""
        whole: dict[str, Traffic] = defaultdict(Traffic)
        for actor in (*self.before, *list(self.actors.values())):
            for kind, each in list(actor.traffic.items()):
                mine = whole[kind]
                mine.messages += each.messages
                mine.bytes += each.bytes
                mine.receipts += each.receipts
        return whole

    def _outcome(self) -> Outcome:
        assert self._finish is not None
        action, seconds = self._finish
        everybody = [*self.before, *self.actors.values()]
        traffic: dict[str, Traffic] = self._traffic()
        busy: dict[str, float] = defaultdict(float)
        traffic["all"].resent = sum(actor.participant.post.resent for actor in everybody)
        for actor in everybody:
            if actor.learner is not None:
                busy[actor.name] += actor.busy
        for name, actor in self.actors.items():
            self.alive[name] += max(0.0, self._began + seconds - actor.since)
        alive = {name: there for name, there in self.alive.items() if name.startswith("worker")}
        more = {"events": sum(actor.events for actor in everybody), "crashes": self.crashes}
        return Outcome(
            action.values, action.reason, action.figures.get("record", {}), action.figures.get("halted", {}), seconds,
            dict(traffic), dict(busy), alive, more, Trace(self.diaries) if self.runtime.record else None,
        )  # fmt: skip
