"""Exactly once and in order, between lives: numbers, receipts, and sending again.

A life of a participant ends with a crash; the next has a higher incarnation. Between two lives messages are numbered.
What is not receipted is sent again, what comes before its turn is held back, and what came already is not delivered.
What is said to somebody who died is void, unless that is a server: it comes back as it was when it last kept its state,
and gets again all that came after that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hogwild.messaging.actions import SetTimer, Transmit
from hogwild.messaging.events import PeerJoined, PeerLost
from hogwild.messaging.messages import Ack, Body, Envelope

RESEND = "resend"
WINDOW = 64  # messages to one peer that it has not received, with which no burst is begun
MOST_HELD = 4096  # messages that came too early, from one sender; more are sent again when it is their turn

Table = dict[str, tuple[int, int]]
"""For each sender its life, and the number of the message that is expected next."""


@dataclass(slots=True, eq=False)
class _Out:
    """What was sent to a peer and may have to be sent again."""

    next: int = 0
    received: int = 0
    mark: int = 0  # what was sent before this was sent before the last time the alarm rang
    bodies: dict[int, tuple[Body, int, int]] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _In:
    """What came from a peer."""

    life: int
    expected: int = 0
    kept: int = 0
    held: dict[int, Body] = field(default_factory=dict)


def is_durable(name: str) -> bool:
    """Whether a participant goes on from what it kept, when it is started again."""
    return name.startswith("server")


class ReliableChannel:
    """One participant's mail. ``lives`` are those of the participants that are there when it begins."""

    def __init__(self, me: str, incarnation: int, lives: dict[str, int], patience: float) -> None:
        self.me, self.incarnation, self.patience = me, incarnation, patience
        self.epoch = self.clock = 0  # that go with every message
        self.refused = 0  # messages that were not for this life, or from one that is over
        self.resent = 0
        self.lives = dict(lives)
        self.present = set(lives)
        self._out: dict[str, _Out] = {}
        self._in: dict[str, _In] = {}
        self._unreceived = 0
        self._full: set[str] = set()  # who has not received more than a window of messages
        self._alarmed = False
        self._keeps = is_durable(me)
        self._unsaid: set[str] = set()  # senders who do not know yet what was kept

    # Sending

    @property
    def crowded(self) -> bool:
        """Whether so much is on its way to somebody that it is better to wait than to send more."""
        return bool(self._full)

    def sealed(self, to: str, body: Body) -> Envelope | None:
        """An envelope with the next number, which is sent again until its receipt comes. Nothing for who is gone."""
        if to not in self.present and not is_durable(to):
            return None
        out = self._out.setdefault(to, _Out())
        sequence, out.next = out.next, out.next + 1
        out.bodies[sequence] = body, self.epoch, self.clock
        self._unreceived += 1
        self._count(to, out)
        return self._envelope(to, sequence, body, self.epoch, self.clock)

    def _envelope(self, to: str, sequence: int, body: Body | Ack, epoch: int, clock: int) -> Envelope:
        return Envelope(self.me, self.incarnation, to, self.lives.get(to, 0), sequence, epoch, clock, body)

    def resend(self) -> Iterator[Transmit]:
        """Send again what was sent before the alarm was set and has no receipt."""
        self._alarmed = False
        for to, out in self._out.items():
            if to not in self.present:
                continue
            for sequence in range(out.received, out.mark):
                if sequence in out.bodies:
                    self.resent += 1
                    yield Transmit(self._envelope(to, sequence, *out.bodies[sequence]))
            out.mark = out.next

    def all_again(self) -> None:
        """All that has no receipt is to be sent again the next time, however short a time ago it was sent."""
        for out in self._out.values():
            out.mark = out.next

    def alarm(self) -> Iterator[SetTimer]:
        """An alarm, if something is on its way and none is set."""
        if self._unreceived and not self._alarmed:
            self._alarmed = True
            yield SetTimer(RESEND, self.patience)

    def _count(self, to: str, out: _Out) -> None:
        if out.next - out.received > WINDOW:
            self._full.add(to)
        else:
            self._full.discard(to)

    def _drop(self, to: str) -> None:
        out = self._out.pop(to, None)
        self._full.discard(to)
        if out is not None:
            self._unreceived -= sum(number >= out.received for number in out.bodies)

    # Receiving

    def receive(self, envelope: Envelope) -> bool:
        """Take in what came; return whether to deliver what can be, and then to send a receipt."""
        sender, body = envelope.sender, envelope.body
        over = sender not in self.present or envelope.incarnation != self.lives[sender]
        if envelope.life != self.incarnation or over:
            self.refused += 1
            return False
        if isinstance(body, Ack):
            self._receipted(sender, body)
            return False
        box = self._box(sender)
        if envelope.sequence >= box.expected and len(box.held) < MOST_HELD:
            box.held[envelope.sequence] = body
        return True

    def deliver(self, sender: str) -> Body | None:
        """The next message of a sender, if it has come."""
        box = self._box(sender)
        body = box.held.pop(box.expected, None)
        if body is not None:
            box.expected += 1
            if self._keeps:
                self._unsaid.add(sender)
        return body

    def receipt(self, sender: str) -> Transmit:
        """Tell a sender what has come."""
        box = self._box(sender)
        if not self._keeps:
            box.kept = box.expected
        return Transmit(self._envelope(sender, 0, Ack(box.expected, box.kept), self.epoch, self.clock))

    def _box(self, sender: str) -> _In:
        box = self._in.get(sender)
        if box is None or box.life != self.lives[sender]:
            box = self._in[sender] = _In(self.lives[sender])
        return box

    def _receipted(self, sender: str, receipt: Ack) -> None:
        out = self._out.get(sender)
        if out is None:
            return
        for sequence in range(out.received, min(receipt.received, out.next)):
            self._unreceived -= sequence in out.bodies
        out.received = max(out.received, min(receipt.received, out.next))
        self._count(sender, out)
        for sequence in list(out.bodies):  # in the order of their numbers
            if sequence >= receipt.kept:
                break
            del out.bodies[sequence]

    # Being there after a crash

    def table(self) -> Table:
        """What has come so far, to be kept together with what it did."""
        return {sender: (box.life, box.expected) for sender, box in self._in.items()}

    def kept(self) -> Iterator[Transmit]:
        """Let senders know that what came so far is safe."""
        for sender in sorted(self._unsaid):
            box = self._in[sender]
            box.kept = box.expected
            if sender in self.present and self.lives[sender] == box.life:
                yield Transmit(self._envelope(sender, 0, Ack(box.expected, box.kept), self.epoch, self.clock))
        self._unsaid.clear()

    def restore(self, table: Table) -> list[tuple[str, int]]:
        """Go on from what was kept; return those whose life is over since then."""
        self._in = {sender: _In(life, expected, expected) for sender, (life, expected) in table.items()}
        return [
            (sender, life) for sender, (life, _) in table.items()
            if sender not in self.present or self.lives[sender] != life
        ]  # fmt: skip

    # Who is there

    def news(self, envelope: Envelope) -> list[PeerLost | PeerJoined]:
        """The first sign of a life: what it means for who is there.

        What is not for this life may have been sent by somebody who was gone before this life began.
        """
        if envelope.life == self.incarnation and envelope.incarnation > self.lives.get(envelope.sender, -1):
            return self.membership(PeerJoined(envelope.sender, envelope.incarnation))
        return []

    def membership(self, event: PeerLost | PeerJoined) -> list[PeerLost | PeerJoined]:
        """Somebody is gone or there: what of it is new."""
        peer, life = event.peer, event.incarnation
        known = self.lives.get(peer, -1)
        if isinstance(event, PeerLost):
            if life < known or peer not in self.present:
                return []
            self._forget(peer)
            return [event]
        if life <= known:
            return []
        changes: list[PeerLost | PeerJoined] = [event]
        if peer in self.present:
            self._forget(peer)
            changes.insert(0, PeerLost(peer, known))
        if not is_durable(peer):
            self._drop(peer)  # what was said while nobody was there: a new life is counted to from nothing
        self.lives[peer] = life
        self.present.add(peer)
        if is_durable(peer) and peer in self._out:
            out = self._out[peer]  # it has lost what it had not kept: all of that is on its way again
            first = min(out.bodies, default=out.next)
            self._unreceived += sum(number < out.received for number in out.bodies)
            out.received, out.mark = min(first, out.received), out.next
            self._count(peer, out)
        return changes

    def _forget(self, peer: str) -> None:
        self.present.discard(peer)
        if not is_durable(peer):
            self._drop(peer)
