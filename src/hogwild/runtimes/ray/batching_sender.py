"""Batching sender: one call for all messages of a reaction to one destination, with acknowledgements piggybacked.

A window limits the unanswered calls to each destination, so that a slow receiver gets fewer and larger calls.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from hogwild.messaging.messages import Ack, Envelope
from hogwild.runtimes.ray.wire_codec import Parts, encode_envelopes

WINDOW = 16  # maximal number of unanswered calls to one destination
# Maximal number of bytes in the unanswered calls to one destination. Large arrays therefore reduce the number of
# concurrent calls, but never below two.
FLYING = 48 << 20
# Number of unanswered calls to one destination up to which messages are sent at once. Above this number, messages wait
# until they fill a call, or until fewer calls are unanswered.
BUSY = 1
FULL = 8 << 20  # bytes of messages after which a call is full
# Maximal number of messages that wait for one destination. Further messages are dropped, and the reliable channel
# retransmits them.
MOST_WAITING = 4096
MOST_TOGETHER = 256  # maximal number of messages in one call
# Number of acknowledgements that may wait for a message to the same destination. It is half of the 64 unacknowledged
# messages (``WINDOW`` of the reliable channel) above which the other node starts no burst.
RECEIPTS = 32
A_WHILE = 0.02  # maximal seconds that a message or an acknowledgement waits while the window has room
LOOK = 0.001  # seconds between two queries for answered calls; a query costs as much as a short message

Call = Callable[[Any, Parts], Any]  # (handle, pieces of bytes) -> reference of the call
Unanswered = Callable[[list[Any]], list[Any]]  # (references of calls) -> the unanswered ones among them


@dataclass(eq=False, slots=True)
class _Line:
    """Queue and unanswered calls of one destination. Times are seconds of the sender's clock."""

    handle: Any
    waiting: deque[Envelope] = field(default_factory=deque)
    size: int = 0  # bytes of the waiting messages
    since: float = 0.0  # time at which the oldest waiting message was queued
    looked: float = -LOOK  # time of the last query for answered calls
    receipt: Envelope | None = None  # the last acknowledgement, which includes all earlier ones
    receipts: int = 0  # acknowledgements that ``receipt`` combines
    calls: list[Any] = field(default_factory=list)  # unanswered calls, oldest first


class BatchingSender:
    """Sends the messages of one actor in batches, each batch as one call.

    The thread that ends a reaction makes the calls of that reaction. The sender thread makes the calls that had to wait
    for an answer or for ``A_WHILE`` seconds.

    Parameters
    ----------
    call : Call
        Function that makes a call to an actor.
    unanswered : Unanswered
        Function that returns the unanswered ones among calls.
    now : callable, default time.perf_counter
        Clock, in seconds.
    """

    def __init__(self, call: Call, unanswered: Unanswered, now: Callable[[], float] = time.perf_counter) -> None:
        self.late = threading.Event()  # set when a message or an acknowledgement waits for the sender thread
        self.stuck = threading.Event()  # set when a message waits for the answers to earlier calls
        self.refused = 0  # messages dropped because ``MOST_WAITING`` messages were waiting
        self.calls = 0  # calls made so far
        self._call, self._unanswered, self._now = call, unanswered, now
        self._lines: dict[str, _Line] = {}
        self._touched: set[str] = set()
        self._lock = threading.Lock()

    def connect(self, name: str, handle: Any) -> None:
        """Add a destination that has started, or replace the handle of one that has restarted."""
        with self._lock:
            self._lines[name] = _Line(handle)

    def disconnect(self, name: str) -> None:
        """Remove a crashed destination, and drop the messages that wait for it."""
        with self._lock:
            self._lines.pop(name, None)

    def put(self, envelope: Envelope) -> None:
        """Queue a message until the end of the reaction; an acknowledgement may wait up to ``A_WHILE`` seconds."""
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
        """Send the messages of the reaction that has ended, as far as the window of each destination allows."""
        with self._lock:
            for name in self._touched:
                line = self._lines.get(name)
                if line is not None and (line.waiting or line.receipts >= RECEIPTS) and not self._better_later(line):
                    self._flush(line)
                if line is not None:
                    self._leave(line)
            self._touched.clear()

    def _leave(self, line: _Line) -> None:
        """Signal the sender thread if messages or acknowledgements still wait for a destination."""
        if line.waiting:
            self.stuck.set()
        if line.waiting or line.receipt is not None:
            self.late.set()

    def _better_later(self, line: _Line) -> bool:
        """Return whether a destination answers more slowly than calls are made, so that more calls add latency."""
        if len(line.calls) <= BUSY or _full(line):
            return False
        self._look(line)
        return len(line.calls) > BUSY

    def _look(self, line: _Line) -> None:
        """Remove answered calls, at most once in ``LOOK`` seconds."""
        now = self._now()
        if now - line.looked >= LOOK:
            line.looked, line.calls = now, self._unanswered(line.calls)

    def awaited(self) -> list[Any]:
        """Return for each blocked destination the call whose answer unblocks it. Only the sender thread calls this."""
        with self._lock:
            lines = [line for line in self._lines.values() if line.waiting]
            return [
                line.calls[-limit] for line in lines
                if len(line.calls) >= (limit := _window(line) if _full(line) else BUSY + 1)
            ]  # fmt: skip

    def catch_up(self) -> None:
        """Send what waited for an answer, or for ``A_WHILE`` seconds. Only the sender thread calls this."""
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
    """Return the maximal number of unanswered calls, if each is as large as the next call will be."""
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
    """Combine two acknowledgements into one; an acknowledgement to an earlier incarnation is dropped."""
    assert isinstance(after.body, Ack)
    if before is None or before.life != after.life:
        return after
    assert isinstance(before.body, Ack)
    received, kept = max(before.body.received, after.body.received), max(before.body.kept, after.body.kept)
    return replace(after, body=Ack(received, kept))
