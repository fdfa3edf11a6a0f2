"""One life of a participant: its thread, its mailbox and its alarms."""

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
from hogwild.messaging.actions import Action, Emit, Evaluate, Finish, Persist, SetTimer, SnapshotPart, Train, Transmit
from hogwild.messaging.events import Event, Received, TimerFired, Trained
from hogwild.messaging.job import LocalTrainer, Traffic
from hogwild.messaging.messages import Ack, Envelope, number_of
from hogwild.messaging.node import Node
from hogwild.messaging.reliable_channel import RESEND
from hogwild.messaging.snapshot import SnapshottingNode
from hogwild.messaging.trace import NodeTrace
from hogwild.runtimes.messaging.snapshot_collector import with_trainer_state

LONGEST = 1.0  # seconds of a wait without a look at whether it is over
PIECE = 0.05  # seconds of an injected delay without such a look, and of a wait for receipts that wake nobody
now = time.perf_counter


class ActorEnvironment(Protocol):
    """What an actor has around it."""

    latency: Delay
    hurry: threading.Event  # no injected delays any more
    longest: float  # seconds of the longest burst so far, of anybody

    def deliver(self, envelope: Envelope, sent: float, due: float) -> None: ...
    def turned(self) -> None: ...
    def keep(self, name: str, what: Any) -> None: ...
    def measure(self, actor: Actor, action: Evaluate) -> None: ...
    def tell(self, action: Emit) -> None: ...
    def save(self, actor: Actor, action: SnapshotPart) -> None: ...
    def finish(self, action: Finish) -> None: ...
    def fail(self, name: str, error: BaseException) -> None: ...


class Actor:
    """Runs a participant in a thread of its own. Whoever has its ``lock`` finds it between two reactions."""

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
        self._later: list[tuple[float, int, float, Event]] = []  # when it is due, a number, when it was sent, what
        self._count = self._sent = 0
        self._free = 0.0  # since when it has nothing to do
        self._tasks: deque[Train] = deque()
        self._receipts: deque[Received] = deque()
        self._random = np.random.default_rng([seed, life, *name.encode()])
        self._number = number_of(name) if learner is not None else -1
        self.thread = threading.Thread(target=self._run, name=f"hogwild-{name}", daemon=True)

    def put(self, event: Event, sent: float = 0.0, due: float = 0.0) -> None:
        """Something happens to it, at once or when it is due. From any thread."""
        self._mailbox.put((sent, due, event))

    @property
    def unread(self) -> int:
        """How much waits for it."""
        return self._mailbox.qsize()

    def receipt(self, event: Received) -> None:
        """Something it reads before it does anything else, but need not be woken for. From any thread."""
        self._receipts.append(event)

    def end(self) -> None:
        """Have it end soon: at once, or after the burst it is in. From any thread."""
        self.over.set()
        self._mailbox.put((0.0, 0.0, None))

    # In its own thread

    def _run(self) -> None:
        try:
            while not self.over.is_set():
                if self._tasks:
                    self._train(self._tasks.popleft())
                elif self.participant.post.crowded:  # then it waits for receipts
                    self._read_receipts()
                    self._wait(PIECE)
                else:
                    self._wait(LONGEST)
        except BaseException as error:
            self.house.fail(self.name, error)

    def _wait(self, limit: float) -> None:
        """React to the next thing that happens, if it does so within so many seconds."""
        sent, came, event = self._next(limit)
        if event is not None:
            self._react(event, sent, came)

    def _next(self, limit: float) -> tuple[float, float, Event | None]:
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
        kind = type(event).__name__
        if isinstance(event, Received):
            kind = type(event.envelope.body).__name__
            diary.heard(kind, sent, came, self._free, began)
        self._free = now()
        diary.handled(kind, self._free - began)

    def _train(self, train: Train) -> None:
        """A burst; then what was heard meanwhile, and what it came to."""
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
        until = now() + seconds
        while (left := until - now()) > 0 and not self.house.hurry.is_set():
            if self.over.wait(min(left, PIECE)):
                return

    def _carry_out(self, action: Action) -> None:
        if isinstance(action, Transmit):
            self._send(action.envelope)
        elif isinstance(action, Train):
            self._tasks.append(action)  # not now: what else there is to do should not wait for it
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
        """Nobody answers in the middle of a burst: nothing is sent again before the longest would be over."""
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
    """Measures parameters in a thread of its own, one after the other, while everybody goes on."""

    def __init__(self, measure: Callable[[Any], dict[str, float]], done: Callable[..., None], fail: Any) -> None:
        self._measure, self._done, self._fail = measure, done, fail
        self._asked: queue.SimpleQueue[tuple[Actor, Evaluate] | None] = queue.SimpleQueue()
        self._over = False
        self.thread = threading.Thread(target=self._run, name="hogwild-measurer", daemon=True)

    def put(self, actor: Actor, action: Evaluate) -> None:
        """Have parameters measured for somebody."""
        self._asked.put((actor, action))

    def end(self) -> None:
        """Have it end after what it is at."""
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
