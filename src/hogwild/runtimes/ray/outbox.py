"""What goes out: one call for all that a turn has for somebody, few calls at once, and receipts along with the rest."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from hogwild.messages.message import Envelope, Receipt
from hogwild.runtimes.ray.wire import Parts, packed

WINDOW = 16  # calls to one destination that are not answered
BUSY = 2  # of those; with more, what is short waits until it can go together with what comes next
SHORT = 16 << 10  # bytes
MOST_WAITING = 4096  # messages to one destination; more are not taken: the post sends them again
MOST_TOGETHER = 256  # messages in one call
LARGE = 4 << 20  # bytes after which a call is full
RECEIPTS = 16  # that may wait for something else to go with
A_WHILE = 0.02  # seconds that they wait at most

Call = Callable[[Any, Parts], Any]  # (handle, what) -> something to wait for
Unanswered = Callable[[list[Any]], list[Any]]


@dataclass(eq=False, slots=True)
class _Line:
    handle: Any
    waiting: deque[Envelope] = field(default_factory=deque)
    receipt: Envelope | None = None  # the last one says all that those before it did
    receipts: int = 0
    calls: list[Any] = field(default_factory=list)


class Outbox:
    """Lines to others. Calls are made by whoever ends a turn; the clerk makes those that had to wait."""

    def __init__(self, call: Call, unanswered: Unanswered) -> None:
        self.late = threading.Event()  # something waits for the clerk
        self.refused = 0
        self.calls = 0
        self._call, self._unanswered = call, unanswered
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
            if isinstance(envelope.body, Receipt):
                line.receipt = _later(line.receipt, envelope)
                line.receipts += 1
            elif len(line.waiting) >= MOST_WAITING:
                self.refused += 1
                return
            else:
                line.waiting.append(envelope)
            self._touched.add(envelope.to)

    def turned(self) -> None:
        """A turn is over."""
        with self._lock:
            for name in self._touched:
                line = self._lines.get(name)
                if line is not None and (line.waiting or line.receipts >= RECEIPTS) and not self._better_later(line):
                    self._flush(line)
                if line is not None and (line.waiting or line.receipt is not None):
                    self.late.set()
            self._touched.clear()

    def _better_later(self, line: _Line) -> bool:
        """Whether calls are answered more slowly than they are made, and more would only make that worse."""
        if len(line.calls) <= BUSY or len(line.waiting) >= MOST_TOGETHER or _long(line):
            return False
        line.calls = self._unanswered(line.calls)
        return len(line.calls) > BUSY

    def catch_up(self) -> None:
        """Send what has waited. For the clerk."""
        self.late.clear()
        with self._lock:
            for line in self._lines.values():
                self._flush(line)
                if line.waiting or line.receipt is not None:
                    self.late.set()

    def _flush(self, line: _Line) -> None:
        while line.waiting or line.receipt is not None:
            if len(line.calls) >= WINDOW:
                line.calls = self._unanswered(line.calls)
                if len(line.calls) >= WINDOW:
                    return
            line.calls.append(self._call(line.handle, packed(_batch(line))))
            self.calls += 1


def _long(line: _Line) -> bool:
    return bool(line.waiting) and line.waiting[0].nbytes > SHORT


def _batch(line: _Line) -> list[Envelope]:
    batch: list[Envelope] = []
    size = 0
    if line.receipt is not None:
        batch.append(line.receipt)
        line.receipt, line.receipts = None, 0
    while line.waiting and len(batch) < MOST_TOGETHER and size < LARGE:
        batch.append(line.waiting.popleft())
        size += batch[-1].nbytes
    return batch


def _later(before: Envelope | None, after: Envelope) -> Envelope:
    """The receipt that says what two do."""
    assert isinstance(after.body, Receipt)
    if before is None or before.life != after.life:
        return after
    assert isinstance(before.body, Receipt)
    received, kept = max(before.body.received, after.body.received), max(before.body.kept, after.body.kept)
    return replace(after, body=Receipt(received, kept))
