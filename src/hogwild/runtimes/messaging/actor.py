"""Actor: the thread, the mailbox and the timers of one incarnation of a node."""

from __future__ import annotations

import heapq
import queue
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from hogwild.delays import Delay
from hogwild.messaging.job import LocalTrainer, Traffic
from hogwild.messaging.messages import Ack, Envelope, number_of
from hogwild.messaging.node import Node
from hogwild.messaging.protocol import (
    Action,
    Emit,
    Evaluate,
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

LONGEST = 1.0  # seconds of a wait, after which the thread checks whether it must terminate
# Seconds between two such checks during an injected delay. Also the seconds of one wait of a crowded node: it polls for
# acknowledgements, because an acknowledgement may be queued without waking the thread.
PIECE = 0.05
now = time.perf_counter


class ActorEnvironment(Protocol):
    """Environment of an actor, which executes the actions of its node."""

    latency: Delay  # delay of each message, in seconds
    hurry: threading.Event  # set when injected delays are to be skipped
    longest: float  # seconds of the longest burst of any worker so far

    def deliver(self, envelope: Envelope, sent: float, due: float) -> None: ...
    def turned(self) -> None: ...
    def keep(self, name: str, what: Any) -> None: ...
    def measure(self, actor: Actor, action: Evaluate) -> None: ...
    def tell(self, action: Emit) -> None: ...
    def save(self, actor: Actor, action: SnapshotPart) -> None: ...
    def finish(self, action: Finish) -> None: ...
    def fail(self, name: str, error: BaseException) -> None: ...


class Actor:
    """Actor that runs one incarnation of a node in a separate thread.

    A thread that holds ``lock`` finds the node between two reactions.

    Parameters
    ----------
    house : ActorEnvironment
        Environment that executes the actions.
    name : str
        Name of the node.
    life : int
        Incarnation of the node, from 0.
    participant : Node or SnapshottingNode
        Role and reliable channel of the node.
    learner : LocalTrainer or None
        Trainer of a worker; None for all other nodes.
    slow : float
        Seconds that the actor sleeps after each burst.
    seed : int
        Seed of the random latencies.
    diary : NodeTrace or None
        Trace in which the actor records durations; None if the run keeps no trace.
    """

    def __init__(
        self, house: ActorEnvironment, name: str, life: int, participant: Node | SnapshottingNode, learner: LocalTrainer
        | None, slow: float, seed: int, diary: NodeTrace | None,
    ) -> None:  # fmt: skip
        self.house, self.name, self.life, self.participant, self.learner = house, name, life, participant, learner
        self.slow, self.diary = slow, diary
        self.over, self.lock = threading.Event(), threading.Lock()
        self.traffic: dict[str, Traffic] = defaultdict(Traffic)
        self.busy, self.events, self.since = 0.0, 0, now()
        self.bursts = self.updates = 0
        self._mailbox: queue.SimpleQueue[tuple[float, float, Event | None]] = queue.SimpleQueue()
        self._later: list[tuple[float, int, float, Event]] = []  # due time, tie-breaker, sending time, event
        self._count = self._sent = 0
        self._free = 0.0  # time since which the thread has been idle, in seconds
        self._tasks: deque[Train] = deque()
        self._receipts: deque[Received] = deque()
        self._random = np.random.default_rng([seed, life, *name.encode()])
        self._number = number_of(name) if learner is not None else -1
        self.thread = threading.Thread(target=self._run, name=f"hogwild-{name}", daemon=True)

    def put(self, event: Event, sent: float = 0.0, due: float = 0.0) -> None:
        """Queue an event, which takes effect at its ``due`` time. Any thread may call this."""
        self._mailbox.put((sent, due, event))

    @property
    def unread(self) -> int:
        """The number of events in the mailbox."""
        return self._mailbox.qsize()

    def receipt(self, event: Received) -> None:
        """Queue an acknowledgement without waking the thread. Any thread may call this.

        The actor processes queued acknowledgements before its next event.
        """
        self._receipts.append(event)

    def end(self) -> None:
        """Terminate the thread, at once or after the present burst. Any thread may call this."""
        self.over.set()
        self._mailbox.put((0.0, 0.0, None))

    # Methods of the actor's thread

    def _run(self) -> None:
        try:
            while not self.over.is_set():
                if self._tasks:
                    self._train(self._tasks.popleft())
                elif self.participant.post.crowded:  # the node must wait for acknowledgements
                    self._read_receipts()
                    self._wait(PIECE)
                else:
                    self._wait(LONGEST)
        except BaseException as error:
            self.house.fail(self.name, error)

    def _wait(self, limit: float) -> None:
        """React to the next event, if there is one within ``limit`` seconds."""
        sent, came, event = self._next(limit)
        if event is not None:
            self._react(event, sent, came)

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
            self._at(due, event, sent)
            return 0.0, 0.0, None
        return sent, due, event

    def _at(self, when: float, event: Event, sent: float = 0.0) -> None:
        self._count += 1
        heapq.heappush(self._later, (when, self._count, sent, event))

    def _react(self, event: Event, sent: float = 0.0, came: float = 0.0) -> None:
        began = now()
        with self.lock:
            if self.over.is_set():
                return
            while self._receipts:
                self._take(self._receipts.popleft())
            self._take(event)
        self.house.turned()
        if self.diary is not None:
            self._note(self.diary, event, sent, came, began)

    def _read_receipts(self) -> None:
        with self.lock:
            while self._receipts and not self.over.is_set():
                self._take(self._receipts.popleft())
        self.house.turned()

    def _take(self, event: Event) -> None:
        self.events += 1
        for action in self.participant.react(event):
            self._carry_out(action)

    def _note(self, diary: NodeTrace, event: Event, sent: float, came: float, began: float) -> None:
        """Record the durations of a reaction in the trace."""
        kind = type(event).__name__
        if isinstance(event, Received):
            kind = type(event.envelope.body).__name__
            diary.heard(kind, sent, came, self._free, began)
        self._free = now()
        diary.handled(kind, self._free - began)

    def _train(self, train: Train) -> None:
        """Train a burst; then react to the events that arrived meanwhile, and last to the result of the burst."""
        assert self.learner is not None
        began = now()
        trained: Trained = self.learner.burst(train)
        self._dawdle(self.slow)
        self._free = now()
        seconds = self._free - began
        self.busy += seconds
        self.bursts += 1
        self.updates += trained.terms
        self.house.longest = max(self.house.longest, seconds)
        if self.diary is not None:
            self.diary.bursts.append((seconds, train.terms))
        for _ in range(self._mailbox.qsize() + len(self._later)):
            self._wait(0.0)
        self._react(trained)

    def _dawdle(self, seconds: float) -> None:
        """Sleep for the injected delay, unless the run is interrupted or the actor terminates."""
        until = now() + seconds
        while (left := until - now()) > 0 and not self.house.hurry.is_set():
            if self.over.wait(min(left, PIECE)):
                return

    def _carry_out(self, action: Action) -> None:
        if isinstance(action, Transmit):
            self._send(action.envelope)
        elif isinstance(action, Train):
            self._tasks.append(action)  # the other actions of the reaction must not wait for the burst
        elif isinstance(action, SetTimer):
            self._at(now() + self._after(action), TimerFired(action.name))
        elif isinstance(action, Persist):
            self.house.keep(self.name, action.what)
        elif isinstance(action, Evaluate):
            self.house.measure(self, action)
        elif isinstance(action, Emit):
            self.house.tell(action)
        elif isinstance(action, SnapshotPart):
            self.house.save(self, with_trainer_state(action, self.learner))
        elif isinstance(action, Finish):
            self.house.finish(action)

    def _after(self, ring: SetTimer) -> float:
        """Return the seconds until a timer fires.

        A node acknowledges nothing during a burst. So a retransmission waits at least twice the longest burst.
        """
        return max(ring.after, 2 * self.house.longest) if ring.name == RESEND else ring.after

    def _send(self, envelope: Envelope) -> None:
        traffic = self.traffic[type(envelope.body).__name__]
        if isinstance(envelope.body, Ack):
            traffic.receipts += 1
        else:
            traffic.messages += 1
        traffic.bytes += envelope.nbytes
        sent, after = now(), self.house.latency.draw(self._random, self._number, self._sent)
        self._sent += 1
        self.house.deliver(envelope, sent, sent + after)


class Evaluator:
    """Evaluator that evaluates parameters in a separate thread, one request after the other, while all nodes continue.

    Parameters
    ----------
    measure : callable
        Function that evaluates parameters.
    done : callable
        Function that receives the actor, the action and the results.
    fail : callable
        Function that receives a name and an exception, if an evaluation fails.
    """

    def __init__(self, measure: Callable[[Any], dict[str, float]], done: Callable[..., None], fail: Any) -> None:
        self._measure, self._done, self._fail = measure, done, fail
        self._asked: queue.SimpleQueue[tuple[Actor, Evaluate] | None] = queue.SimpleQueue()
        self._over = False
        self.thread = threading.Thread(target=self._run, name="hogwild-measurer", daemon=True)

    def put(self, actor: Actor, action: Evaluate) -> None:
        """Queue parameters that an actor requests to evaluate."""
        self._asked.put((actor, action))

    def end(self) -> None:
        """Terminate the thread after the present evaluation."""
        self._over = True
        self._asked.put(None)

    def _run(self) -> None:
        try:
            while not self._over:
                asked = self._next()
                if asked is not None and not self._over:
                    actor, action = asked
                    self._done(actor, action, self._measure(action.values))
        except BaseException as error:
            self._fail("the measurement", error)

    def _next(self) -> tuple[Actor, Evaluate] | None:
        try:
            return self._asked.get(timeout=LONGEST)
        except queue.Empty:
            return None
