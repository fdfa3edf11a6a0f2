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

    >>> store = StateStore()
    >>> store.put("server-0", 0, "a"), store.load("server-0", 1), store.put("server-0", 0, "b")
    (True, 'a', False)
    """

    _states: dict[str, Any] = field(default_factory=dict)  # last state of each server
    _incarnations: dict[str, int] = field(default_factory=dict)  # latest incarnation that has read its state, by server

    def put(self, name: str, incarnation: int, what: object) -> bool:
        """Store the state of an incarnation; return whether the store has accepted it."""
        if incarnation < self._incarnations.get(name, 0):
            return False
        self._states[name] = what
        return True

    def load(self, name: str, incarnation: int) -> object:
        """Return the state for a new incarnation, or None; refuse states of earlier incarnations from now on."""
        self._incarnations[name] = incarnation
        return self._states.get(name)


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
    replicated : Table, default {}
        Replicated messages: for each sender its incarnation, and the number of the first message that is not
        replicated. Senders may delete all earlier messages.
    earliest : float, default 0.0
        Earliest time of the next replication, in seconds.
    """

    store: Put
    answer: Answer
    replicated: Table = field(default_factory=dict)
    earliest: float = 0.0
    _state: Any = None  # the latest state, if its replication has not started
    _in_progress: tuple[Any, Table] | None = None  # the replication in progress: its call, and its table
    _held: list[Envelope] = field(default_factory=list)  # replies that wait for the next replication
    _held_in_progress: list[Envelope] = field(default_factory=list)  # replies that wait for the replication in progress
    _last_acks: dict[str, Envelope] = field(default_factory=dict)  # last acknowledgement to each sender, unlimited
    _lock: Any = field(default_factory=threading.Lock)

    def put(self, what: object) -> None:
        """Set the latest state, which replaces an earlier one whose replication has not started."""
        with self._lock:
            self._state = what

    def hold(self, envelope: Envelope) -> None:
        """Hold a reply until the latest state is replicated, and make that replication due at once."""
        with self._lock:
            self._held.append(envelope)
            self.earliest = 0.0

    def limit_ack(self, ack: Envelope) -> Envelope:
        """Return an acknowledgement that confirms as persisted only the replicated messages."""
        assert isinstance(ack.body, Ack)
        with self._lock:
            self._last_acks[ack.to] = ack
            return self._limited(ack, ack.body)

    def _limited(self, ack: Envelope, body: Ack) -> Envelope:
        incarnation, expected = self.replicated.get(ack.to, (-1, 0))
        return replace(
            ack, body=Ack(body.received, min(body.kept, expected if incarnation == ack.receiver_incarnation else 0))
        )

    @property
    def busy(self) -> bool:
        """Whether a replication is pending or in progress, or a reply is held."""
        return self._state is not None or self._in_progress is not None or bool(self._held)

    def catch_up(self, now: float) -> list[Envelope]:
        """Finish and start replications; return the messages to send now. Only the sender thread calls this."""
        with self._lock:
            envelopes = self._finish_replication()
            if self._in_progress is None and self._state is None:  # the latest state is replicated
                envelopes += self._held
                self._held = []
            elif self._in_progress is None and now >= self.earliest:
                what, self._state, self.earliest = self._state, None, now + EVERY
                self._in_progress, self._held_in_progress, self._held = (self.store(what), what[0]), self._held, []
            return envelopes

    def _finish_replication(self) -> list[Envelope]:
        """Finish the replication in progress; return its held replies, and acknowledgements with the new limit."""
        if self._in_progress is None:
            return []
        call, table = self._in_progress
        accepted = self.answer(call)
        if accepted is None:
            return []
        self._in_progress = None
        if not accepted:
            return []
        self.replicated, held = table, self._held_in_progress
        self._held_in_progress = []
        return held + [
            self._limited(ack, ack.body) for to, ack in self._last_acks.items()
            if to in table and isinstance(ack.body, Ack)
        ]  # fmt: skip
