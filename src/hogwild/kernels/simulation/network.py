"""Network and reliable channels, as :mod:`hogwild.messaging.reliable_channel` and the Python event loop have them."""

from __future__ import annotations

from typing import Any

from hogwild.kernels.simulation.event_heap import schedule
from hogwild.kernels.simulation.random_durations import bits_of, draw, uniform
from hogwild.kernels.simulation.table_access import (
    bit_addresses,
    channel_at,
    known_peers,
    message_at,
    node_at,
    traffic_at,
)
from hogwild.kernels.simulation.tables import ACK, ACKNOWLEDGED, ARRIVED, COORDINATOR, RESEND, SERVER
from hogwild.messaging.messages import HEADER
from hogwild.messaging.reliable_channel import MOST_HELD

LINKS = 1  # Row of the random bits of messages; that of updates is row 0.


def channel(run: Any, sender: Any, receiver: Any) -> Any:
    """Return the number of the channel between two nodes, one of which is the coordinator or the server."""
    if receiver == COORDINATOR:
        return sender
    nodes = run.nodes
    if sender == COORDINATOR:
        return nodes + receiver
    return 2 * nodes + sender if receiver == SERVER else 3 * nodes + receiver


def new_message(run: Any, kind: Any, size: Any) -> Any:
    """Return a message of a kind; ``size`` is that of its arrays in bytes."""
    found = run.free_message
    if found >= 0:
        run.free_message = message_at(run, found).following
    else:
        found = run.fresh_message
        run.fresh_message += 1
    run.messages += 1
    message = message_at(run, found)
    message.kind, message.size, message.following, message.change, message.arrived = kind, HEADER + size, -1, -1, 0
    return found


def send(run: Any, number: Any, sender: Any, receiver: Any) -> None:
    """Send a message, which is sent again until it is acknowledged."""
    c = channel(run, sender, receiver)
    way, message = channel_at(run, c), message_at(run, number)
    if way.next == 0 and sender <= SERVER:
        peers = known_peers(run)[sender * (run.nodes + 1) : (sender + 1) * (run.nodes + 1)]
        peers[peers[run.nodes]] = receiver
        peers[run.nodes] += 1
    message.sequence = way.next
    way.next += 1
    if way.first < 0:
        way.first = number
    else:
        message_at(run, way.last).following = number
    way.last = number
    if way.awaited < 0:
        way.awaited = number
    node_at(run, sender).unacknowledged += 1
    transmit(run, c, number)


def transmit(run: Any, c: Any, number: Any) -> None:
    """Transmit a message, which may be lost or arrive twice."""
    message, traffic = message_at(run, number), traffic_at(run, message_at(run, number).kind)
    traffic.messages += 1
    lost = on_its_way(run, channel_at(run, c).sender, message.size, ARRIVED, c, number, message.sequence)
    traffic.bytes += message.size
    traffic.lost += lost


def acknowledge(run: Any, c: Any) -> None:
    """Transmit an acknowledgement of all messages of a channel that were delivered."""
    traffic, way = traffic_at(run, ACK), channel_at(run, c)
    traffic.receipts += 1
    traffic.bytes += HEADER
    traffic.lost += on_its_way(run, way.receiver, HEADER, ACKNOWLEDGED, c, way.expected, 0)


def on_its_way(run: Any, sender: Any, size: Any, kind: Any, c: Any, number: Any, sequence: Any) -> Any:
    """Schedule the arrivals of the copies of a message; return 1 if there are none, else 0."""
    node = node_at(run, sender)
    leaves = max(run.now, node.uplink) + size / run.bandwidth
    node.uplink = leaves
    bits = bits_of(bit_addresses(run), LINKS)
    if run.loss > 0 and uniform(bits) < run.loss:
        return 1
    twice = run.duplication > 0 and uniform(bits) < run.duplication
    first = latency(run, bits, node.latency_factor)
    second = latency(run, bits, node.latency_factor) if twice else 0.0
    schedule(run, leaves + first, kind, c, number, sequence)
    if twice:
        schedule(run, leaves + second, kind, c, number, sequence)
    return 0


def latency(run: Any, bits: Any, factor: Any) -> Any:
    """Return the latency of one copy of a message."""
    seconds = draw(bits, run.latency_kind, run.latency_first, run.latency_second) * factor
    if run.reordering > 0 and uniform(bits) < run.reordering:
        seconds *= 1 + 9 * uniform(bits)
    return seconds


def arrive(run: Any, c: Any, number: Any, sequence: Any) -> None:
    """Note the arrival of a message, unless it is delivered already or too many messages are held back."""
    way = channel_at(run, c)
    # A message that is not delivered is not acknowledged, so its record is still there.
    if sequence == way.expected or (sequence > way.expected and way.held < MOST_HELD):
        message = message_at(run, number)
        way.held += 1 - message.arrived
        message.arrived = 1


def deliverable(run: Any, c: Any) -> Any:
    """Return the next message of a channel that can be delivered, and count it as delivered; -1 if there is none."""
    way = channel_at(run, c)
    number = way.awaited
    if number < 0 or message_at(run, number).arrived == 0:
        return -1
    way.expected += 1
    way.held -= 1
    way.awaited = message_at(run, number).following
    if way.receiver == SERVER:
        node_at(run, way.sender).unpersisted = 1
    return number


def acknowledged(run: Any, c: Any, received: Any) -> None:
    """Drop the messages of a channel below number ``received``."""
    way = channel_at(run, c)
    while way.received < received:
        number = way.first
        message = message_at(run, number)
        way.first = message.following
        message.following = run.free_message
        run.free_message = number
        run.messages -= 1
        way.received += 1
        node_at(run, way.sender).unacknowledged -= 1


def window_full(run: Any, worker: Any) -> bool:
    """Return whether a worker has too many unacknowledged messages to begin a burst."""
    first, second = channel_at(run, worker), channel_at(run, 2 * run.nodes + worker)
    window = run.window
    return bool(first.next - first.received > window or second.next - second.received > window)


def set_timer(run: Any, number: Any) -> None:
    """Set the timer of a node for messages to be sent again, if it has any and the timer is not set."""
    node = node_at(run, number)
    if node.unacknowledged > 0 and node.timer == 0:
        node.timer = 1
        schedule(run, run.now + run.patience, RESEND, number, 0, 0)


def resend(run: Any, number: Any) -> None:
    """Send all messages of a node again that were sent before its timer fired last and are not acknowledged."""
    node_at(run, number).timer = 0
    if number > SERVER:
        resend_on(run, channel(run, number, COORDINATOR))
        resend_on(run, channel(run, number, SERVER))
        return
    peers = known_peers(run)[number * (run.nodes + 1) : (number + 1) * (run.nodes + 1)]
    for place in range(peers[run.nodes]):
        resend_on(run, channel(run, number, peers[place]))


def resend_on(run: Any, c: Any) -> None:
    """Send the messages of one channel again."""
    way = channel_at(run, c)
    number = way.first
    for _ in range(way.received, way.mark):
        transmit(run, c, number)
        node_at(run, way.sender).resent += 1
        number = message_at(run, number).following
    way.mark = way.next
