"""State replication of a parameter server: the store of its states, from the last of which it restarts.

The store is in the coordinator's process. No run continues after a crash of the coordinator, so the store needs no
replica.

The server acknowledges a message as persisted only after the state store has the state that includes it. A joining
worker gets its reply only after the stored state includes that worker. Otherwise a restarted server would not know the
worker.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from hogwild.messaging.messages import Ack, Envelope
from hogwild.messaging.reliable_channel import Table


@dataclass(eq=False)
class StateStore:
    """Last state of each server.

    The store refuses the state of an incarnation whose successor has started. Otherwise the server would acknowledge
    messages as persisted, and the successor would not have their effect.

    >>> vault = StateStore()
    >>> vault.keep("server-0", 0, "a"), vault.kept("server-0", 1), vault.keep("server-0", 0, "b")
    (True, 'a', False)
    """

    _what: dict[str, Any] = field(default_factory=dict)  # last state of each server
    _life: dict[str, int] = field(default_factory=dict)  # latest incarnation that has read its state, by server

    def keep(self, name: str, life: int, what: Any) -> bool:
        """Store the state of an incarnation; return whether the store has accepted it."""
        if life < self._life.get(name, 0):
            return False
        self._what[name] = what
        return True

    def kept(self, name: str, life: int) -> Any:
        """Return the state for a new incarnation, or None; refuse states of earlier incarnations from now on."""
        self._life[name] = life
        return self._what.get(name)


EVERY = 0.5  # seconds between two replications

Put = Callable[[Any], Any]  # (state) -> reference of the call
Answer = Callable[[Any], bool | None]  # (reference of the call) -> whether the store accepted; None without an answer


@dataclass(eq=False)
class StateReplicator:
    """Replicates the latest state of a server.

    A replication starts when the previous one has arrived and ``EVERY`` seconds have passed since its start.

    Parameters
    ----------
    store : Put
        Function that sends a state to the state store.
    answer : Answer
        Function that returns the store's answer.
    safe : Table, default {}
        Replicated messages: for each sender its incarnation, and the number of the first message that is not
        replicated. Senders may delete all earlier messages.
    """

    store: Put
    answer: Answer
    safe: Table = field(default_factory=dict)
    _what: Any = None  # the latest state, if its replication has not started
    _next: float = 0.0  # earliest time of the next replication, in seconds
    _going: tuple[Any, Table] | None = None  # the replication in progress: its call, and the table of its messages
    _held: list[Envelope] = field(default_factory=list)  # replies that wait for the next replication
    _freed: list[Envelope] = field(default_factory=list)  # replies that wait for the replication in progress
    _said: dict[str, Envelope] = field(default_factory=dict)  # last acknowledgement to each sender, not yet limited
    _lock: Any = field(default_factory=threading.Lock)

    def keep(self, what: Any) -> None:
        """Set the latest state, which replaces an earlier one whose replication has not started."""
        with self._lock:
            self._what = what

    def hold(self, envelope: Envelope) -> None:
        """Hold a reply until the latest state is replicated, and make that replication due at once."""
        with self._lock:
            self._held.append(envelope)
            self._next = 0.0

    def honest(self, receipt: Envelope) -> Envelope:
        """Return an acknowledgement that confirms as persisted only the replicated messages."""
        assert isinstance(receipt.body, Ack)
        with self._lock:
            self._said[receipt.to] = receipt
            return self._capped(receipt, receipt.body)

    def _capped(self, receipt: Envelope, body: Ack) -> Envelope:
        life, expected = self.safe.get(receipt.to, (-1, 0))
        return replace(receipt, body=Ack(body.received, min(body.kept, expected if life == receipt.life else 0)))

    @property
    def busy(self) -> bool:
        """Whether a replication is pending or in progress, or a reply is held."""
        return self._what is not None or self._going is not None or bool(self._held)

    def catch_up(self, now: float) -> list[Envelope]:
        """Finish and start replications; return the messages to send now. Only the sender thread calls this."""
        with self._lock:
            envelopes = self._arrived()
            if self._going is None and self._what is None:  # the latest state is replicated
                envelopes += self._held
                self._held = []
            elif self._going is None and now >= self._next:
                what, self._what, self._next = self._what, None, now + EVERY
                self._going, self._freed, self._held = (self.store(what), what[0]), self._held, []
            return envelopes

    def _arrived(self) -> list[Envelope]:
        """Finish the replication in progress; return its held replies, and acknowledgements with the new limit."""
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
