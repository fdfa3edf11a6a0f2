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
MAX_BYTES_IN_FLIGHT = 48 << 20
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
MAX_WAITING_ACKS = 32
MAX_DELAY = 0.02  # maximal seconds that a message or an acknowledgement waits while the window has room
POLL_INTERVAL = 0.001  # seconds between two queries for answered calls; a query costs as much as a short message

Call = Callable[[Any, Parts], Any]  # (peer, pieces of bytes) -> the call; None if there is no answer to wait for
Unanswered = Callable[[list[Any]], list[Any]]  # (references of calls) -> the unanswered ones among them


@dataclass(eq=False, slots=True)
class _Destination:
    """Queue and unanswered calls of one destination. Times are seconds of the sender's clock."""

    handle: Any
    waiting: deque[Envelope] = field(default_factory=deque)
    size: int = 0  # bytes of the waiting messages
    since: float = 0.0  # time at which the oldest waiting message was queued
    last_poll: float = -POLL_INTERVAL  # time of the last query for answered calls
    ack: Envelope | None = None  # the last acknowledgement, which includes all earlier ones
    acks: int = 0  # acknowledgements that ``ack`` combines
    calls: list[Any] = field(default_factory=list)  # unanswered calls, oldest first


class BatchingSender:
    """Sends the messages of one actor in batches, each batch as one call.

    The thread that ends a reaction makes the calls of that reaction. The sender thread makes the calls that had to wait
    for an answer or for ``MAX_DELAY`` seconds.

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
        self.pending = threading.Event()  # set when a message or an acknowledgement waits for the sender thread
        self.blocked = threading.Event()  # set when a message waits for the answers to earlier calls
        self.refused = 0  # messages dropped because ``MOST_WAITING`` messages were waiting
        self.calls = 0  # calls made so far
        self._call, self._unanswered, self._now = call, unanswered, now
        self._destinations: dict[str, _Destination] = {}
        self._touched: set[str] = set()
        self._lock = threading.Lock()

    def connect(self, name: str, handle: object) -> None:
        """Add a destination that has started, or replace the handle of one that has restarted."""
        with self._lock:
            self._destinations[name] = _Destination(handle)

    def disconnect(self, name: str) -> None:
        """Remove a crashed destination, and drop the messages that wait for it."""
        with self._lock:
            self._destinations.pop(name, None)

    def put(self, envelope: Envelope) -> None:
        """Queue a message until the end of the reaction; an acknowledgement may wait up to ``MAX_DELAY`` seconds."""
        with self._lock:
            destination = self._destinations.get(envelope.to)
            if destination is None:
                return
            if not destination.waiting and destination.ack is None:
                destination.since = self._now()
            if isinstance(envelope.body, Ack):
                destination.ack = _merge_acks(destination.ack, envelope)
                destination.acks += 1
            elif len(destination.waiting) >= MOST_WAITING:
                self.refused += 1
                return
            else:
                destination.waiting.append(envelope)
                destination.size += envelope.nbytes
            self._touched.add(envelope.to)

    def after_reaction(self) -> None:
        """Send the messages of the reaction that has ended, as far as the window of each destination allows."""
        with self._lock:
            for name in self._touched:
                destination = self._destinations.get(name)
                if destination is None:
                    continue
                if (destination.waiting or destination.acks >= MAX_WAITING_ACKS) and not self._should_wait(destination):
                    self._flush(destination)
                self._signal(destination)
            self._touched.clear()

    def _signal(self, destination: _Destination) -> None:
        """Signal the sender thread if messages or acknowledgements still wait for a destination."""
        if destination.waiting:
            self.blocked.set()
        if destination.waiting or destination.ack is not None:
            self.pending.set()

    def _should_wait(self, destination: _Destination) -> bool:
        """Return whether a destination answers more slowly than calls are made, so that more calls add latency."""
        if len(destination.calls) <= BUSY or _full(destination):
            return False
        self._remove_answered(destination)
        return len(destination.calls) > BUSY

    def _remove_answered(self, destination: _Destination) -> None:
        """Remove answered calls, at most once in ``POLL_INTERVAL`` seconds."""
        now = self._now()
        if now - destination.last_poll >= POLL_INTERVAL:
            destination.last_poll, destination.calls = now, self._unanswered(destination.calls)

    def awaited(self) -> list[Any]:
        """Return for each blocked destination the call whose answer unblocks it. Only the sender thread calls this."""
        with self._lock:
            destinations = [destination for destination in self._destinations.values() if destination.waiting]
            return [
                destination.calls[-limit] for destination in destinations
                if len(destination.calls) >= (limit := _window(destination) if _full(destination) else BUSY + 1)
            ]  # fmt: skip

    def catch_up(self) -> None:
        """Send what waited for an answer, or for ``MAX_DELAY`` seconds. Only the sender thread calls this."""
        self.pending.clear()
        self.blocked.clear()
        with self._lock:
            for destination in self._destinations.values():
                destination.last_poll = -POLL_INTERVAL
                overdue = self._now() - destination.since >= MAX_DELAY
                if overdue or (destination.waiting and not self._should_wait(destination)):
                    self._flush(destination)
                self._signal(destination)

    def _flush(self, destination: _Destination) -> None:
        destination.since = self._now()
        while destination.waiting or destination.ack is not None:
            if len(destination.calls) >= _window(destination):
                self._remove_answered(destination)
                if len(destination.calls) >= _window(destination):
                    return
            call = self._call(destination.handle, encode_envelopes(_batch(destination)))
            self.calls += 1
            if call is not None:
                destination.calls.append(call)


def _window(destination: _Destination) -> int:
    """Return the maximal number of unanswered calls, if each is as large as the next call will be."""
    next_one = max(destination.waiting[0].nbytes, min(destination.size, FULL)) if destination.waiting else 0
    return max(2, min(WINDOW, MAX_BYTES_IN_FLIGHT // max(1, next_one)))


def _full(destination: _Destination) -> bool:
    return destination.size >= FULL or len(destination.waiting) >= MOST_TOGETHER


def _batch(destination: _Destination) -> list[Envelope]:
    batch: list[Envelope] = []
    size = 0
    if destination.ack is not None:
        batch.append(destination.ack)
        destination.ack, destination.acks = None, 0
    while destination.waiting and len(batch) < MOST_TOGETHER and size < FULL:
        batch.append(destination.waiting.popleft())
        size += batch[-1].nbytes
    destination.size -= size
    return batch


def _merge_acks(before: Envelope | None, after: Envelope) -> Envelope:
    """Combine two acknowledgements into one; an acknowledgement to an earlier incarnation is dropped."""
    assert isinstance(after.body, Ack)
    if before is None or before.receiver_incarnation != after.receiver_incarnation:
        return after
    assert isinstance(before.body, Ack)
    received, kept = max(before.body.received, after.body.received), max(before.body.kept, after.body.kept)
    return replace(after, body=Ack(received, kept))
