"""Reliable channels: exactly-once, in-order delivery between incarnations of nodes.

An incarnation of a node ends with a crash. The next incarnation has a higher number. Messages between two incarnations
are numbered. The sender retransmits unacknowledged messages. The receiver holds back messages that arrive early, and
drops messages that it has already delivered.

Messages to a crashed node are void, unless the node is a server. A server restarts from the state that it last
persisted. Its senders then retransmit all messages that came after that state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hogwild.messaging.messages import Ack, Body, Envelope, is_server
from hogwild.messaging.protocol import PeerJoined, PeerLost, SetTimer, Transmit

RESEND = "resend"
WINDOW = 64  # Default of the most unacknowledged messages to one peer with which a burst may begin.
# Most early messages that are held back from one sender. The sender retransmits any message beyond them.
MOST_HELD = 4096

Table = dict[str, tuple[int, int]]
"""For each sender its incarnation, and the number of the message that is expected next."""


@dataclass(slots=True, eq=False)
class _Out:
    """Messages sent to a peer, which may have to be retransmitted."""

    next: int = 0  # Number of the next message.
    received: int = 0  # Messages below this number are acknowledged.
    mark: int = 0  # Messages below this number were sent before the timer last fired.
    # Messages that a crash of the receiver may still lose, with their epoch and clock, by number.
    bodies: dict[int, tuple[Body, int, int]] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _In:
    """Messages received from one incarnation of a peer."""

    incarnation: int
    expected: int = 0  # Number of the next message to deliver.
    persisted: int = 0  # The effects of messages below this number are persisted.
    held: dict[int, Body] = field(default_factory=dict)  # Messages that are not delivered yet, by number.


def is_durable(name: str) -> bool:
    """Return whether a node resumes from its persisted state when it is restarted. Only servers do."""
    return is_server(name)


class ReliableChannel:
    """Reliable channel of one node to all other nodes.

    Parameters
    ----------
    me : str
        Name of the node.
    incarnation : int
        Number of the node's incarnation.
    peer_incarnations : dict of str to int
        Incarnations of the other nodes that are running when the node starts, by name.
    patience : float
        Seconds after which unacknowledged messages are retransmitted.
    window : int, default 64
        Most unacknowledged messages to one peer with which a burst may begin.
    """

    def __init__(
        self, me: str, incarnation: int, peer_incarnations: dict[str, int], patience: float, window: int = WINDOW
    ) -> None:
        self.me, self.incarnation, self.patience, self.window = me, incarnation, patience, window
        self.epoch = self.clock = 0  # Both numbers are sent with every message.
        # Messages refused because they were for another incarnation, or from an incarnation that has ended.
        self.refused = 0
        self.resent = 0  # Messages retransmitted.
        self.peer_incarnations = dict(peer_incarnations)
        self.present = set(peer_incarnations)
        self._out: dict[str, _Out] = {}
        self._in: dict[str, _In] = {}
        self._unacknowledged = 0  # Unacknowledged messages to all peers.
        self._full: set[str] = set()  # Peers with more than ``window`` unacknowledged messages.
        self._timer_set = False
        self._durable = is_durable(me)
        self._unpersisted: set[str] = set()  # Senders whose newest messages are delivered but not yet persisted.

    # Sending.

    @property
    def window_full(self) -> bool:
        """Whether more than ``window`` messages to one peer are unacknowledged, so that no burst should begin."""
        return bool(self._full)

    def wrap(self, to: str, body: Body) -> Envelope | None:
        """Return an envelope with the next sequence number, which is retransmitted until it is acknowledged.

        Return None if the receiver has crashed and is not durable.
        """
        if to not in self.present and not is_durable(to):
            return None
        out = self._out.setdefault(to, _Out())
        sequence, out.next = out.next, out.next + 1
        out.bodies[sequence] = body, self.epoch, self.clock
        self._unacknowledged += 1
        self._count(to, out)
        return self._envelope(to, sequence, body, self.epoch, self.clock)

    def _envelope(self, to: str, sequence: int, body: Body | Ack, epoch: int, clock: int) -> Envelope:
        return Envelope(self.me, self.incarnation, to, self.peer_incarnations.get(to, 0), sequence, epoch, clock, body)

    def resend(self) -> Iterator[Transmit]:
        """Retransmit unacknowledged messages that were sent before the previous firing of the timer."""
        self._timer_set = False
        for to, out in self._out.items():
            if to not in self.present:
                continue
            for sequence in range(out.received, out.mark):
                if sequence in out.bodies:
                    self.resent += 1
                    yield Transmit(self._envelope(to, sequence, *out.bodies[sequence]))
            out.mark = out.next

    def mark_all_for_resend(self) -> None:
        """Mark all unacknowledged messages for the next retransmission, no matter how recently they were sent."""
        for out in self._out.values():
            out.mark = out.next

    def set_timer(self) -> Iterator[SetTimer]:
        """Set the retransmission timer, if messages are unacknowledged and the timer is not set."""
        if self._unacknowledged and not self._timer_set:
            self._timer_set = True
            yield SetTimer(RESEND, self.patience)

    def _count(self, to: str, out: _Out) -> None:
        if out.next - out.received > self.window:
            self._full.add(to)
        else:
            self._full.discard(to)

    def _drop(self, to: str) -> None:
        out = self._out.pop(to, None)
        self._full.discard(to)
        if out is not None:
            self._unacknowledged -= sum(number >= out.received for number in out.bodies)

    # Receiving.

    def receive(self, envelope: Envelope) -> bool:
        """Store a message that has arrived.

        Return whether the caller should deliver the stored messages that are next in order, and then acknowledge them.
        """
        sender, body = envelope.sender, envelope.body
        outdated = sender not in self.present or envelope.incarnation != self.peer_incarnations[sender]
        if envelope.receiver_incarnation != self.incarnation or outdated:
            self.refused += 1
            return False
        if isinstance(body, Ack):
            self._acknowledged(sender, body)
            return False
        inbox = self._inbox(sender)
        # The expected message is stored even if the inbox is full: else no message could ever leave the inbox.
        if envelope.sequence == inbox.expected or (envelope.sequence > inbox.expected and len(inbox.held) < MOST_HELD):
            inbox.held[envelope.sequence] = body
        return True

    def deliver(self, sender: str) -> Body | None:
        """Return the next message of a sender in order, or None if it has not arrived."""
        inbox = self._inbox(sender)
        body = inbox.held.pop(inbox.expected, None)
        if body is not None:
            inbox.expected += 1
            if self._durable:
                self._unpersisted.add(sender)
        return body

    def ack(self, sender: str) -> Transmit:
        """Return an acknowledgement of all messages of a sender that were delivered in order."""
        inbox = self._inbox(sender)
        if not self._durable:
            inbox.persisted = inbox.expected
        return Transmit(self._envelope(sender, 0, Ack(inbox.expected, inbox.persisted), self.epoch, self.clock))

    def _inbox(self, sender: str) -> _In:
        inbox = self._in.get(sender)
        if inbox is None or inbox.incarnation != self.peer_incarnations[sender]:
            inbox = self._in[sender] = _In(self.peer_incarnations[sender])
        return inbox

    def _acknowledged(self, sender: str, ack: Ack) -> None:
        out = self._out.get(sender)
        if out is None:
            return
        for sequence in range(out.received, min(ack.received, out.next)):
            self._unacknowledged -= sequence in out.bodies
        out.received = max(out.received, min(ack.received, out.next))
        self._count(sender, out)
        for sequence in list(out.bodies):  # Numbers ascend, because a dictionary keeps the order of insertion.
            if sequence >= ack.kept:
                break
            del out.bodies[sequence]

    # Persistence across crashes.

    def table(self) -> Table:
        """Return the incarnation and the next expected number for each sender.

        A node persists the table together with its state, so that after a restart no message takes effect twice or
        never.
        """
        return {sender: (inbox.incarnation, inbox.expected) for sender, inbox in self._in.items()}

    def durable_acks(self) -> Iterator[Transmit]:
        """Acknowledge to senders that the effect of their messages so far is persisted."""
        for sender in sorted(self._unpersisted):
            inbox = self._in[sender]
            inbox.persisted = inbox.expected
            if sender in self.present and self.peer_incarnations[sender] == inbox.incarnation:
                yield Transmit(self._envelope(sender, 0, Ack(inbox.expected, inbox.persisted), self.epoch, self.clock))
        self._unpersisted.clear()

    def restore(self, table: Table) -> list[tuple[str, int]]:
        """Restore a persisted table, and return the senders in it whose incarnation has ended since then."""
        self._in = {sender: _In(incarnation, expected, expected) for sender, (incarnation, expected) in table.items()}
        return [
            (sender, incarnation) for sender, (incarnation, _) in table.items()
            if sender not in self.present or self.peer_incarnations[sender] != incarnation
        ]  # fmt: skip

    # Membership.

    def implied_membership(self, envelope: Envelope) -> list[PeerLost | PeerJoined]:
        """Return the membership events that follow from the first message of an incarnation.

        A message for another incarnation of this node proves nothing: its sender may have crashed before this
        incarnation began.
        """
        known = self.peer_incarnations.get(envelope.sender, -1)
        if envelope.receiver_incarnation == self.incarnation and envelope.incarnation > known:
            return self.membership(PeerJoined(envelope.sender, envelope.incarnation))
        return []

    def membership(self, event: PeerLost | PeerJoined) -> list[PeerLost | PeerJoined]:
        """Apply a membership event, and return the events that are new to this node.

        The list is empty for an event about an incarnation that the node already knows of. A restart whose crash was
        not reported yields a :class:`PeerLost` before the :class:`PeerJoined`.
        """
        peer, incarnation = event.peer, event.incarnation
        known = self.peer_incarnations.get(peer, -1)
        if isinstance(event, PeerLost):
            if incarnation < known or peer not in self.present:
                return []
            self._remove(peer)
            return [event]
        if incarnation <= known:
            return []
        changes: list[PeerLost | PeerJoined] = [event]
        if peer in self.present:
            self._remove(peer)
            changes.insert(0, PeerLost(peer, known))
        if not is_durable(peer):
            # No message to the previous incarnation may remain: the numbers for a new incarnation start at 0.
            self._drop(peer)
        self.peer_incarnations[peer] = incarnation
        self.present.add(peer)
        if is_durable(peer) and peer in self._out:
            # A restarted server has lost the messages that it had not persisted, so all of them are retransmitted.
            out = self._out[peer]
            first = min(out.bodies, default=out.next)
            self._unacknowledged += sum(number < out.received for number in out.bodies)
            out.received, out.mark = min(first, out.received), out.next
            self._count(peer, out)
        return changes

    def _remove(self, peer: str) -> None:
        self.present.discard(peer)
        if not is_durable(peer):
            self._drop(peer)
