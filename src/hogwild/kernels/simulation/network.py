"""Network and reliable channels, as :mod:`hogwild.messaging.reliable_channel` and the Python event loop have them."""

from __future__ import annotations

from typing import Any

from hogwild.kernels.simulation.event_heap import schedule
from hogwild.kernels.simulation.random_durations import bits_of, draw, uniform
from hogwild.kernels.simulation.tables import ACK, ACKNOWLEDGED, ARRIVED, COORDINATOR, RESEND, SERVER
from hogwild.messaging.messages import HEADER
from hogwild.messaging.reliable_channel import MOST_HELD

LINKS = 1  # Row of the random bits of messages; that of updates is row 0.


def channel(t: Any, sender: Any, receiver: Any) -> Any:
    """Return the number of the channel between two nodes, one of which is the coordinator or the server."""
    if receiver == COORDINATOR:
        return sender
    nodes = t.nodes.size
    if sender == COORDINATOR:
        return nodes + receiver
    return 2 * nodes + sender if receiver == SERVER else 3 * nodes + receiver


def new_message(t: Any, kind: Any, size: Any) -> Any:
    """Return a message of a kind; ``size`` is that of its arrays in bytes."""
    run = t.run[0]
    found = run.free_message
    if found >= 0:
        run.free_message = t.messages[found].following
    else:
        found = run.fresh_message
        run.fresh_message += 1
    run.messages += 1
    message = t.messages[found]
    message.kind, message.size, message.following, message.change, message.arrived = kind, HEADER + size, -1, -1, 0
    return found


def send(t: Any, number: Any, sender: Any, receiver: Any) -> None:
    """Send a message, which is sent again until it is acknowledged."""
    c = channel(t, sender, receiver)
    way, message = t.channels[c], t.messages[number]
    if way.next == 0 and sender <= SERVER:
        known = t.peers[sender, t.nodes.size]
        t.peers[sender, known] = receiver
        t.peers[sender, t.nodes.size] = known + 1
    message.sequence = way.next
    way.next += 1
    if way.first < 0:
        way.first = number
    else:
        t.messages[way.last].following = number
    way.last = number
    if way.awaited < 0:
        way.awaited = number
    t.nodes[sender].unacknowledged += 1
    transmit(t, c, number)


def transmit(t: Any, c: Any, number: Any) -> None:
    """Transmit a message, which may be lost or arrive twice."""
    message, traffic = t.messages[number], t.traffic[t.messages[number].kind]
    traffic.messages += 1
    lost = on_its_way(t, t.channels[c].sender, message.size, ARRIVED, c, number, message.sequence)
    traffic.bytes += message.size
    traffic.lost += lost


def acknowledge(t: Any, c: Any) -> None:
    """Transmit an acknowledgement of all messages of a channel that were delivered."""
    traffic, way = t.traffic[ACK], t.channels[c]
    traffic.receipts += 1
    traffic.bytes += HEADER
    traffic.lost += on_its_way(t, way.receiver, HEADER, ACKNOWLEDGED, c, way.expected, 0)


def on_its_way(t: Any, sender: Any, size: Any, kind: Any, c: Any, number: Any, sequence: Any) -> Any:
    """Schedule the arrivals of the copies of a message; return 1 if there are none, else 0."""
    run, node = t.run[0], t.nodes[sender]
    leaves = max(run.now, node.uplink) + size / run.bandwidth
    node.uplink = leaves
    bits = bits_of(t.bits, LINKS)
    if run.loss > 0 and uniform(bits) < run.loss:
        return 1
    twice = run.duplication > 0 and uniform(bits) < run.duplication
    first = latency(run, bits, node.latency_factor)
    second = latency(run, bits, node.latency_factor) if twice else 0.0
    schedule(t, leaves + first, kind, c, number, sequence)
    if twice:
        schedule(t, leaves + second, kind, c, number, sequence)
    return 0


def latency(run: Any, bits: Any, factor: Any) -> Any:
    """Return the latency of one copy of a message."""
    seconds = draw(bits, run.latency_kind, run.latency_first, run.latency_second) * factor
    if run.reordering > 0 and uniform(bits) < run.reordering:
        seconds *= 1 + 9 * uniform(bits)
    return seconds


def arrive(t: Any, c: Any, number: Any, sequence: Any) -> None:
    """Note the arrival of a message, unless it is delivered already or too many messages are held back."""
    way = t.channels[c]
    # A message that is not delivered is not acknowledged, so its record is still there.
    if sequence == way.expected or (sequence > way.expected and way.held < MOST_HELD):
        message = t.messages[number]
        way.held += 1 - message.arrived
        message.arrived = 1


def deliverable(t: Any, c: Any) -> Any:
    """Return the next message of a channel that can be delivered, and count it as delivered; -1 if there is none."""
    way = t.channels[c]
    number = way.awaited
    if number < 0 or t.messages[number].arrived == 0:
        return -1
    way.expected += 1
    way.held -= 1
    way.awaited = t.messages[number].following
    if way.receiver == SERVER:
        t.nodes[way.sender].unpersisted = 1
    return number


def acknowledged(t: Any, c: Any, received: Any) -> None:
    """Drop the messages of a channel below number ``received``."""
    run, way = t.run[0], t.channels[c]
    while way.received < received:
        number = way.first
        message = t.messages[number]
        way.first = message.following
        message.following = run.free_message
        run.free_message = number
        run.messages -= 1
        way.received += 1
        t.nodes[way.sender].unacknowledged -= 1


def window_full(t: Any, worker: Any) -> bool:
    """Return whether a worker has too many unacknowledged messages to begin a burst."""
    first, second = t.channels[worker], t.channels[2 * t.nodes.size + worker]
    window = t.run[0].window
    return bool(first.next - first.received > window or second.next - second.received > window)


def set_timer(t: Any, number: Any) -> None:
    """Set the timer of a node for messages to be sent again, if it has any and the timer is not set."""
    node = t.nodes[number]
    if node.unacknowledged > 0 and node.timer == 0:
        node.timer = 1
        schedule(t, t.run[0].now + t.run[0].patience, RESEND, number, 0, 0)


def resend(t: Any, number: Any) -> None:
    """Send all messages of a node again that were sent before its timer fired last and are not acknowledged."""
    t.nodes[number].timer = 0
    if number > SERVER:
        resend_on(t, channel(t, number, COORDINATOR))
        resend_on(t, channel(t, number, SERVER))
        return
    for place in range(t.peers[number, t.nodes.size]):
        resend_on(t, channel(t, number, t.peers[number, place]))


def resend_on(t: Any, c: Any) -> None:
    """Send the messages of one channel again."""
    way = t.channels[c]
    number = way.first
    for _ in range(way.received, way.mark):
        transmit(t, c, number)
        t.nodes[way.sender].resent += 1
        number = t.messages[number].following
    way.mark = way.next
