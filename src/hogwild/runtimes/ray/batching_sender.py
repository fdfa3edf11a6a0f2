"""What goes out: one call for all that a turn has for somebody, few calls at once, and receipts along with the rest."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from hogwild.messaging.messages import Ack, Envelope
from hogwild.runtimes.ray.wire_codec import Parts, encode_envelopes

WINDOW = 16  # calls to one destination that are not answered
FLYING = 48 << 20  # bytes in them: with large arrays fewer calls are on their way, but two at least
BUSY = 1  # of those; with more, messages wait until a call of them is full, or until fewer are unanswered
FULL = 8 << 20  # bytes of messages after which a call is full
MOST_WAITING = 4096  # messages to one destination; more are not taken: the post sends them again
MOST_TOGETHER = 256  # messages in one call
RECEIPTS = 32  # that may wait for something else to go with: half of what may be on its way without one
A_WHILE = 0.02  # seconds that anything waits at most
LOOK = 0.001  # seconds between two looks at what is answered, which cost as much as a short message

Call = Callable[[Any, Parts], Any]  # (handle, what) -> something to wait for
Unanswered = Callable[[list[Any]], list[Any]]


@dataclass(eq=False, slots=True)
class _Line:
    handle: Any
    waiting: deque[Envelope] = field(default_factory=deque)
    size: int = 0  # bytes that wait
    since: float = 0.0  # when the first of what waits was put here
    looked: float = -LOOK  # when it was last asked which calls are answered
    receipt: Envelope | None = None  # the last one says all that those before it did
    receipts: int = 0
    calls: list[Any] = field(default_factory=list)


class BatchingSender:
    """Lines to others. Calls are made by whoever ends a turn; the clerk makes those that had to wait."""

    def __init__(self, call: Call, unanswered: Unanswered, now: Callable[[], float] = time.perf_counter) -> None:
        self.late = threading.Event()  # something waits for the clerk,
        self.stuck = threading.Event()  # and for answers
        self.refused = 0
        self.calls = 0
        self._call, self._unanswered, self._now = call, unanswered, now
        self._lines: dict[str, _Line] = {}
        self._touched: set[str] = set()
        self._lock = threading.Lock()

    def connect(self, name: str, handle: Any) -> None:
        """Somebody is there, for the first time or again."""
        with self._lock:
            self._lines[name] = _Line(handle)

    def disconnect(self, name: str) -> None:
        """Somebody is gone, and what was for it."""
        with self._lock:
            self._lines.pop(name, None)

    def put(self, envelope: Envelope) -> None:
        """Have something sent when the turn is over; a receipt may wait a little longer."""
        with self._lock:
            line = self._lines.get(envelope.to)
            if line is None:
                return
            if not line.waiting and line.receipt is None:
                line.since = self._now()
            if isinstance(envelope.body, Ack):
                line.receipt = _later(line.receipt, envelope)
                line.receipts += 1
            elif len(line.waiting) >= MOST_WAITING:
                self.refused += 1
                return
            else:
                line.waiting.append(envelope)
                line.size += envelope.nbytes
            self._touched.add(envelope.to)

    def turned(self) -> None:
        """A turn is over."""
        with self._lock:
            for name in self._touched:
                line = self._lines.get(name)
                if line is not None and (line.waiting or line.receipts >= RECEIPTS) and not self._better_later(line):
                    self._flush(line)
                if line is not None:
                    self._leave(line)
            self._touched.clear()

    def _leave(self, line: _Line) -> None:
        """Leave what still waits to the clerk."""
        if line.waiting:
            self.stuck.set()
        if line.waiting or line.receipt is not None:
            self.late.set()

    def _better_later(self, line: _Line) -> bool:
        """Whether calls are answered more slowly than they are made, and more would only make that worse."""
        if len(line.calls) <= BUSY or _full(line):
            return False
        self._look(line)
        return len(line.calls) > BUSY

    def _look(self, line: _Line) -> None:
        now = self._now()
        if now - line.looked >= LOOK:
            line.looked, line.calls = now, self._unanswered(line.calls)

    def awaited(self) -> list[Any]:
        """The calls after whose answers there is something to send. For the clerk."""
        with self._lock:
            lines = [line for line in self._lines.values() if line.waiting]
            return [
                line.calls[-limit] for line in lines
                if len(line.calls) >= (limit := _window(line) if _full(line) else BUSY + 1)
            ]  # fmt: skip

    def catch_up(self) -> None:
        """Send what has waited for an answer, or for long. For the clerk."""
        self.late.clear()
        self.stuck.clear()
        with self._lock:
            for line in self._lines.values():
                line.looked = -LOOK
                if self._now() - line.since >= A_WHILE or (line.waiting and not self._better_later(line)):
                    self._flush(line)
                self._leave(line)

    def _flush(self, line: _Line) -> None:
        line.since = self._now()
        while line.waiting or line.receipt is not None:
            if len(line.calls) >= _window(line):
                self._look(line)
                if len(line.calls) >= _window(line):
                    return
            line.calls.append(self._call(line.handle, encode_envelopes(_batch(line))))
            self.calls += 1


def _window(line: _Line) -> int:
    """How many calls may be on their way, each of them as large as the next will be."""
    next_one = max(line.waiting[0].nbytes, min(line.size, FULL)) if line.waiting else 0
    return max(2, min(WINDOW, FLYING // max(1, next_one)))


def _full(line: _Line) -> bool:
    return line.size >= FULL or len(line.waiting) >= MOST_TOGETHER


def _batch(line: _Line) -> list[Envelope]:
    batch: list[Envelope] = []
    size = 0
    if line.receipt is not None:
        batch.append(line.receipt)
        line.receipt, line.receipts = None, 0
    while line.waiting and len(batch) < MOST_TOGETHER and size < FULL:
        batch.append(line.waiting.popleft())
        size += batch[-1].nbytes
    line.size -= size
    return batch


def _later(before: Envelope | None, after: Envelope) -> Envelope:
    """The receipt that says what two do."""
    assert isinstance(after.body, Ack)
    if before is None or before.life != after.life:
        return after
    assert isinstance(before.body, Ack)
    received, kept = max(before.body.received, after.body.received), max(before.body.kept, after.body.kept)
    return replace(after, body=Ack(received, kept))
