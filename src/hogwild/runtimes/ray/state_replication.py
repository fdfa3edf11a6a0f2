"""What a server keeps goes to the vault now and then, and only what has arrived there is receipted as kept.

A worker that enters is told its place only when the vault knows that it is waited for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from hogwild.messaging.messages import Ack, Envelope
from hogwild.messaging.reliable_channel import Table

EVERY = 0.5  # seconds between two times

Put = Callable[[Any], Any]  # (what) -> something to wait for
Answer = Callable[[Any], bool | None]  # whether it was taken; None: no answer yet


@dataclass(eq=False)
class StateReplicator:
    """Sends the last thing that was to be kept, when the one before has arrived and is old enough."""

    store: Put
    answer: Answer
    safe: Table = field(default_factory=dict)  # what senders may forget
    _what: Any = None
    _next: float = 0.0
    _going: tuple[Any, Table] | None = None
    _held: list[Envelope] = field(default_factory=list)  # until what is to be kept has arrived
    _freed: list[Envelope] = field(default_factory=list)  # when what is on its way has arrived
    _said: dict[str, Envelope] = field(default_factory=dict)  # the last receipt to each, as it would like to be
    _lock: Any = field(default_factory=threading.Lock)

    def keep(self, what: Any) -> None:
        """Something is to be kept, in the place of what was before."""
        with self._lock:
            self._what = what

    def hold(self, envelope: Envelope) -> None:
        """Something is to be said when what was kept before it is safe, which should be soon."""
        with self._lock:
            self._held.append(envelope)
            self._next = 0.0

    def honest(self, receipt: Envelope) -> Envelope:
        """A receipt that promises no more than what has arrived."""
        assert isinstance(receipt.body, Ack)
        with self._lock:
            self._said[receipt.to] = receipt
            return self._capped(receipt, receipt.body)

    def _capped(self, receipt: Envelope, body: Ack) -> Envelope:
        life, expected = self.safe.get(receipt.to, (-1, 0))
        return replace(receipt, body=Ack(body.received, min(body.kept, expected if life == receipt.life else 0)))

    @property
    def busy(self) -> bool:
        """Whether there is something to do, soon."""
        return self._what is not None or self._going is not None or bool(self._held)

    def catch_up(self, now: float) -> list[Envelope]:
        """Go on with it; what can be said now. For the clerk."""
        with self._lock:
            envelopes = self._arrived()
            if self._going is None and self._what is None:  # all that was to be kept is
                envelopes += self._held
                self._held = []
            elif self._going is None and now >= self._next:
                what, self._what, self._next = self._what, None, now + EVERY
                self._going, self._freed, self._held = (self.store(what), what[0]), self._held, []
            return envelopes

    def _arrived(self) -> list[Envelope]:
        if self._going is None:
            return []
        call, table = self._going
        taken = self.answer(call)
        if taken is None:
            return []
        self._going = None
        if not taken:
            return []
        self.safe, freed = table, self._freed
        self._freed = []
        return freed + [
            self._capped(receipt, receipt.body) for to, receipt in self._said.items()
            if to in table and isinstance(receipt.body, Ack)
        ]  # fmt: skip
