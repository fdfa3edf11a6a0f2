"""What a participant has around it in a process of its own."""

from __future__ import annotations

import threading
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import ray

from hogwild.delays import Delay, named
from hogwild.messaging.actions import Emit, Evaluate, Finish, SnapshotPart
from hogwild.messaging.events import Evaluated
from hogwild.messaging.messages import Ack, Envelope, JoinReply
from hogwild.runtimes.messaging.actor import Actor, Evaluator, now
from hogwild.runtimes.ray.batching_sender import A_WHILE, BatchingSender, Call, Unanswered
from hogwild.runtimes.ray.state_replication import StateReplicator
from hogwild.runtimes.ray.wire_codec import Parts

IDLE = 1.0  # seconds after which the clerk looks whether there is something to do

News = list[tuple[str, float, dict[str, Any]]]
"""What happened, when, and what else is known of it."""


def send_batch(handle: Any, parts: Parts) -> Any:
    """Call somebody."""
    return handle.deliver.remote(*parts)


def unanswered(calls: list[Any]) -> list[Any]:
    """Those that have not been answered yet. Nobody answers for the dead: Ray does, once it knows."""
    left: list[Any] = ray.wait(calls, num_returns=len(calls), timeout=0, fetch_local=False)[1]
    return left


def answered(calls: list[Any], limit: float) -> None:
    """Wait until one of some calls is answered, or for so many seconds."""
    ray.wait(calls, timeout=limit, fetch_local=False)


@dataclass(frozen=True, slots=True)
class Transport:
    """How calls are made, which of some are not answered, and how to wait for one that is."""

    call: Call = send_batch
    unanswered: Unanswered = unanswered
    wait: Callable[[list[Any], float], None] = answered


class ActorContext:
    """Takes what an actor does to where it belongs: to others, to the vault, or to the driver when it asks."""

    def __init__(self, name: str, life: int, lines: Transport | None = None) -> None:
        self.name, self.life = name, life
        self.latency: Delay = named(0.0)
        self.hurry, self.longest = threading.Event(), 0.0
        self.lines = lines or Transport()
        self.outbox = BatchingSender(self.lines.call, self.lines.unanswered)
        self.keeping: StateReplicator | None = None
        self.measurer: Evaluator | None = None
        self.sent = (0, 0)  # messages and bytes of all, as the driver last heard
        self.failure = ""
        self.finished: tuple[Finish, float] | None = None
        self.began = now()
        self._news: deque[tuple[str, float, dict[str, Any]]] = deque()
        self._saves: deque[SnapshotPart] = deque()

    def open(self, vault: Any, kept: Any, before: float) -> None:
        """Begin, so many seconds after the run did; ``vault``, and what was kept there, is for servers."""
        self.began = now() - before
        if vault is not None:
            store = partial(_keep, vault, self.name, self.life)
            self.keeping = StateReplicator(store, _taken, dict(kept[0]) if kept is not None else {})
        threading.Thread(target=self._clerk, name="hogwild-clerk", daemon=True).start()

    def news(self) -> News:
        """What was told since it was last asked."""
        return [self._news.popleft() for _ in range(len(self._news))]

    def saves(self) -> list[SnapshotPart]:
        """What was known at cuts since it was last asked."""
        return [self._saves.popleft() for _ in range(len(self._saves))]

    def _clerk(self) -> None:
        """Send what had to wait, and have kept what is to be."""
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

    # For the actor

    def deliver(self, envelope: Envelope, sent: float, due: float) -> None:
        """Have something sent."""
        if self.keeping is not None and isinstance(envelope.body, Ack):
            envelope = self.keeping.honest(envelope)
        if self.keeping is not None and isinstance(envelope.body, JoinReply):
            self.keeping.hold(envelope)
        else:
            self.outbox.put(envelope)

    def turned(self) -> None:
        """A reaction is over: what it has to say goes out."""
        self.outbox.turned()

    def keep(self, name: str, what: Any) -> None:
        """Have something kept for the next life."""
        if self.keeping is not None:
            self.keeping.keep(what)
            self.outbox.late.set()

    def measure(self, actor: Actor, action: Evaluate) -> None:
        """Have parameters measured, in another thread."""
        assert self.measurer is not None
        self.measurer.put(actor, action)

    def measured(self, actor: Actor, action: Evaluate, figures: dict[str, float]) -> None:
        """They were."""
        actor.put(Evaluated(action.number, figures))

    def tell(self, action: Emit) -> None:
        """Have something told by the driver."""
        seconds = now() - self.began
        if action.event == "epoch":
            action.what.update(seconds=seconds, messages=self.sent[0], bytes=self.sent[1])
        self._news.append((action.event, seconds, action.what))

    def save(self, actor: Actor, action: SnapshotPart) -> None:
        """Have what was known at a cut put beside what the others did, by the driver."""
        self._saves.append(SnapshotPart(action.number, action.what))

    def finish(self, action: Finish) -> None:
        """The run is over."""
        self.finished = action, now() - self.began

    def fail(self, name: str, error: BaseException) -> None:
        """Somebody cannot go on."""
        told = "".join(traceback.format_exception(error)[-3:])
        self.failure = f"{name} failed: {type(error).__name__}: {error}\n{told}"


def _keep(vault: Any, name: str, life: int, what: Any) -> Any:
    return vault.keep.remote(name, life, what)


def _taken(call: Any) -> bool | None:
    """Whether the vault has taken something; None: it has not answered yet."""
    done, _ = ray.wait([call], timeout=0)
    if not done:
        return None
    try:
        return bool(ray.get(call))
    except ray.exceptions.RayError:
        return False  # without a vault the run is over
