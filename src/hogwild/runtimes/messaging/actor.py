"""Actor: the thread, the mailbox and the timers of one incarnation of a node."""

from __future__ import annotations

import heapq
import queue
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Protocol

import numpy as np

from hogwild.delays import Delay, DelayStream
from hogwild.messaging.deltas import Floats
from hogwild.messaging.job import LocalTrainer, Traffic
from hogwild.messaging.messages import Ack, Envelope, number_of
from hogwild.messaging.node import Node
from hogwild.messaging.protocol import (
    Action,
    Emit,
    Evaluate,
    Evaluated,
    Event,
    Finish,
    Persist,
    Received,
    SetTimer,
    SnapshotPart,
    TimerFired,
    Train,
    Trained,
    Transmit,
)
from hogwild.messaging.reliable_channel import RESEND
from hogwild.messaging.snapshot import SnapshottingNode
from hogwild.messaging.trace import NodeTrace
from hogwild.runtimes.messaging.snapshot_collector import with_trainer_state

MAX_WAIT = 1.0  # seconds of a wait, after which the thread checks whether it must terminate
# Seconds between two such checks during an injected delay. Also the seconds of one wait of a crowded node: it polls for
# acknowledgements, because an acknowledgement may be queued without waking the thread.
POLL_INTERVAL = 0.05
now = time.perf_counter


class ActorEnvironment(Protocol):
    """Environment of an actor, which executes the actions of its node."""

    latency: Delay  # delay of each message, in seconds
    skip_delays: threading.Event  # set when injected delays are to be skipped
    longest_burst: float  # seconds of the longest burst of any worker so far

    def deliver(self, envelope: Envelope, sent: float, due: float) -> None: ...
    def after_reaction(self) -> None: ...
    def persist(self, name: str, what: object) -> None: ...
    def evaluate(self, actor: Actor, action: Evaluate) -> None: ...
    def emit(self, action: Emit) -> None: ...
    def save(self, actor: Actor, action: SnapshotPart) -> None: ...
    def finish(self, action: Finish) -> None: ...
    def fail(self, name: str, error: BaseException) -> None: ...


class Actor:
    """Actor that runs one incarnation of a node in a separate thread.

    A thread that holds ``lock`` finds the node between two reactions.

    Parameters
    ----------
    environment : ActorEnvironment
        Environment that executes the actions.
    name : str
        Name of the node.
    incarnation : int
        Incarnation of the node, from 0.
    node : Node or SnapshottingNode
        Role and reliable channel of the node.
    trainer : LocalTrainer or None
        Trainer of a worker; None for all other nodes.
    delays : DelayStream or None
        Delays of a worker's updates, for whose sum the actor sleeps after each burst; None for all other nodes.
    seed : int
        Seed of the random latencies.
    node_trace : NodeTrace or None
        Trace in which the actor records durations; None if the run keeps no trace.
    """

    def __init__(
        self, environment: ActorEnvironment, name: str, incarnation: int, node: Node | SnapshottingNode,
        trainer: LocalTrainer | None, delays: DelayStream | None, seed: int, node_trace: NodeTrace | None,
    ) -> None:  # fmt: skip
        self.environment, self.name, self.incarnation, self.node = environment, name, incarnation, node
        self.trainer, self.delays, self.node_trace = trainer, delays, node_trace
        self.ended, self.lock = threading.Event(), threading.Lock()
        self.traffic: dict[str, Traffic] = defaultdict(Traffic)
        self.busy, self.events, self.since = 0.0, 0, now()
        self.bursts = self.updates = 0
        self._mailbox: queue.SimpleQueue[tuple[float, float, Event | None]] = queue.SimpleQueue()
        self._later: list[tuple[float, int, float, Event]] = []  # due time, tie-breaker, sending time, event
        self._count = self._sent = 0
        self._idle_since = 0.0  # time since which the thread has been idle, in seconds
        self._tasks: deque[Train] = deque()
        self._asked: dict[int, float] = {}  # times at which evaluations were requested, by their numbers
        self._acks: deque[Received] = deque()
        self._random = np.random.default_rng([seed, incarnation, *name.encode()])
        self._number = number_of(name) if trainer is not None else -1
        self.thread = threading.Thread(target=self._run, name=f"hogwild-{name}", daemon=True)

    def put(self, event: Event, sent: float = 0.0, due: float = 0.0) -> None:
        """Queue an event, which takes effect at its ``due`` time. Any thread may call this."""
        self._mailbox.put((sent, due, event))

    @property
    def unread(self) -> int:
        """The number of events in the mailbox."""
        return self._mailbox.qsize()

    def put_ack(self, event: Received) -> None:
        """Queue an acknowledgement without waking the thread. Any thread may call this.

        The actor processes queued acknowledgements before its next event.
        """
        self._acks.append(event)

    def end(self) -> None:
        """Terminate the thread, at once or after the present burst. Any thread may call this."""
        self.ended.set()
        self._mailbox.put((0.0, 0.0, None))

    # Methods of the actor's thread

    def _run(self) -> None:
        try:
            while not self.ended.is_set():
                if self._tasks:
                    self._train(self._tasks.popleft())
                elif self.node.channel.window_full:  # the node must wait for acknowledgements
                    self._handle_acks()
                    self._wait(POLL_INTERVAL)
                else:
                    self._wait(MAX_WAIT)
        except BaseException as error:
            self.environment.fail(self.name, error)

    def _wait(self, limit: float) -> None:
        """React to the next event, if there is one within ``limit`` seconds."""
        sent, arrived, event = self._next(limit)
        if event is not None:
            self._react(event, sent, arrived)

    def _next(self, limit: float) -> tuple[float, float, Event | None]:
        """Return the sending time, the due time and the next event; no event after ``limit`` seconds."""
        if self._later:
            left = self._later[0][0] - now()
            if left <= 0:
                when, _, sent, due_now = heapq.heappop(self._later)
                return sent, when, due_now
            limit = min(limit, left)
        try:
            sent, due, event = self._mailbox.get(timeout=limit) if limit > 0 else self._mailbox.get_nowait()
        except queue.Empty:
            return 0.0, 0.0, None
        if event is not None and due > now():
            self._schedule(due, event, sent)
            return 0.0, 0.0, None
        return sent, due, event

    def _schedule(self, when: float, event: Event, sent: float = 0.0) -> None:
        self._count += 1
        heapq.heappush(self._later, (when, self._count, sent, event))

    def _react(self, event: Event, sent: float = 0.0, arrived: float = 0.0) -> None:
        began = now()
        with self.lock:
            if self.ended.is_set():
                return
            while self._acks:
                self._handle(self._acks.popleft())
            self._handle(event)
        self.environment.after_reaction()
        if self.node_trace is not None:
            self._record(self.node_trace, event, sent, arrived, began)

    def _handle_acks(self) -> None:
        with self.lock:
            while self._acks and not self.ended.is_set():
                self._handle(self._acks.popleft())
        self.environment.after_reaction()

    def _handle(self, event: Event) -> None:
        self.events += 1
        for action in self.node.react(event):
            self._execute(action)

    def _record(self, node_trace: NodeTrace, event: Event, sent: float, arrived: float, began: float) -> None:
        """Record the durations of a reaction in the trace."""
        kind = type(event).__name__
        if isinstance(event, Evaluated):
            node_trace.evaluations.append(began - self._asked.pop(event.number, began))
        if isinstance(event, Received):
            kind = type(event.envelope.body).__name__
            node_trace.received(kind, sent, arrived, self._idle_since, began)
        self._idle_since = now()
        node_trace.handled(kind, self._idle_since - began)

    def _train(self, train: Train) -> None:
        """Train a burst; then react to the events that arrived meanwhile, and last to the result of the burst."""
        assert self.trainer is not None
        began = now()
        trained: Trained = self.trainer.burst(train)
        # The result of the burst is already computed, so it becomes stale during the delay.
        self._sleep(0.0 if self.delays is None else self.delays.total(train.terms))
        self._idle_since = now()
        seconds = self._idle_since - began
        self.busy += seconds
        self.bursts += 1
        self.updates += trained.terms
        self.environment.longest_burst = max(self.environment.longest_burst, seconds)
        if self.node_trace is not None:
            self.node_trace.bursts.append((seconds, train.terms))
        for _ in range(self._mailbox.qsize() + len(self._later)):
            self._wait(0.0)
        self._react(trained)

    def _sleep(self, seconds: float) -> None:
        """Sleep for the injected delay, unless the run is interrupted or the actor terminates."""
        until = now() + seconds
        while (left := until - now()) > 0 and not self.environment.skip_delays.is_set():
            if self.ended.wait(min(left, POLL_INTERVAL)):
                return

    def _execute(self, action: Action) -> None:
        if isinstance(action, Transmit):
            self._send(action.envelope)
        elif isinstance(action, Train):
            self._tasks.append(action)  # the other actions of the reaction must not wait for the burst
        elif isinstance(action, SetTimer):
            self._schedule(now() + self._timer_delay(action), TimerFired(action.name))
        elif isinstance(action, Persist):
            self.environment.persist(self.name, action.what)
        elif isinstance(action, Evaluate):
            if self.node_trace is not None:
                self._asked[action.number] = now()
            self.environment.evaluate(self, action)
        elif isinstance(action, Emit):
            self.environment.emit(action)
        elif isinstance(action, SnapshotPart):
            self.environment.save(self, with_trainer_state(action, self.trainer))
        elif isinstance(action, Finish):
            self.environment.finish(action)

    def _timer_delay(self, timer: SetTimer) -> float:
        """Return the seconds until a timer fires.

        A node acknowledges nothing during a burst. So a retransmission waits at least twice the longest burst.
        """
        return max(timer.after, 2 * self.environment.longest_burst) if timer.name == RESEND else timer.after

    def _send(self, envelope: Envelope) -> None:
        traffic = self.traffic[type(envelope.body).__name__]
        if isinstance(envelope.body, Ack):
            traffic.receipts += 1
        else:
            traffic.messages += 1
        traffic.bytes += envelope.nbytes
        sent, after = now(), self.environment.latency.draw(self._random, self._number, self._sent)
        self._sent += 1
        self.environment.deliver(envelope, sent, sent + after)


class Evaluator:
    """Evaluator that evaluates parameters in a separate thread, one request after the other, while all nodes continue.

    Parameters
    ----------
    evaluate : callable
        Function that evaluates parameters, exactly or on a sample of large training data.
    done : callable
        Function that receives the actor, the action and the results.
    fail : callable
        Function that receives a name and an exception, if an evaluation fails.
    """

    def __init__(
        self, evaluate: Callable[[Floats, bool], dict[str, float]], done: Callable[..., None],
        fail: Callable[[str, BaseException], None],
    ) -> None:  # fmt: skip
        self._evaluate, self._done, self._fail = evaluate, done, fail
        self._requests: queue.SimpleQueue[tuple[Actor, Evaluate] | None] = queue.SimpleQueue()
        self._ended = False
        self.thread = threading.Thread(target=self._run, name="hogwild-evaluator", daemon=True)

    def put(self, actor: Actor, action: Evaluate) -> None:
        """Queue parameters that an actor requests to evaluate."""
        self._requests.put((actor, action))

    def end(self) -> None:
        """Terminate the thread after the present evaluation."""
        self._ended = True
        self._requests.put(None)

    def _run(self) -> None:
        try:
            while not self._ended:
                request = self._next()
                if request is not None and not self._ended:
                    actor, action = request
                    self._done(actor, action, self._evaluate(action.values, action.exactly))
        except BaseException as error:
            self._fail("the measurement", error)

    def _next(self) -> tuple[Actor, Evaluate] | None:
        try:
            return self._requests.get(timeout=MAX_WAIT)
        except queue.Empty:
            return None
