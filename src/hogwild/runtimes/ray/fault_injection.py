"""Fault injection into the calls between Ray actors: latency, limited bandwidth, loss, duplication and reordering."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from hogwild.runtimes.messaging.actor import now
from hogwild.runtimes.messaging.network_model import Link
from hogwild.runtimes.ray.actor_context import Transport
from hogwild.runtimes.ray.batching_sender import LOOK
from hogwild.runtimes.ray.wire_codec import Parts


@dataclass(eq=False, slots=True)
class Packet:
    """Call under fault injection, which is made once, twice or never."""

    ahead: int  # number of copies that are still to be made
    made: list[Any] = field(default_factory=list)  # unanswered copies that were made


class FaultyTransport:
    """Transport that delays, duplicates and drops the calls of one node, as a ``Link`` specifies.

    Parameters
    ----------
    link : Link
        Latency, bandwidth, loss, duplication and reordering to inject.
    seed : sequence of int
        Seed of the random numbers.
    lines : Transport
        Transport that makes the calls.
    """

    def __init__(self, link: Link, seed: Sequence[int], lines: Transport) -> None:
        self._link, self._lines = link, lines
        self._random = np.random.default_rng(seed)
        self._free = 0.0  # time from which the uplink is free, in seconds
        self._numbers = count()
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._changed = threading.Condition()
        threading.Thread(target=self._carry, name="hogwild-rough", daemon=True).start()

    def call(self, handle: Any, parts: Parts) -> Packet:
        """Schedule the copies of a call; return the packet that stands for the call."""
        with self._changed:
            number = next(self._numbers)
            arrivals = self._link.arrivals(self._random, 0, number)
            size = sum(part.nbytes if isinstance(part, np.ndarray) else len(part) for part in parts)
            self._free = max(self._free, now()) + size / self._link.bandwidth
            packet = Packet(len(arrivals))
            for after in arrivals:
                make: Callable[[], None] = partial(self._make, packet, handle, parts)
                heapq.heappush(self._later, (self._free + after, next(self._numbers), make))
            self._changed.notify()
            return packet

    def unanswered(self, packets: list[Packet]) -> list[Packet]:
        """Return the packets that are not answered yet. A lost packet counts as answered, so no caller waits for it."""
        return [packet for packet in packets if packet.ahead or self._unanswered_calls(packet)]

    def wait(self, packets: list[Packet], limit: float) -> None:
        """Wait until at least one of the packets is answered, for at most ``limit`` seconds."""
        until = now() + limit
        while now() < until and len(self.unanswered(packets)) == len(packets):
            time.sleep(LOOK)  # Ray has no reference of a delayed call, so this loop polls

    def _unanswered_calls(self, packet: Packet) -> bool:
        packet.made = self._lines.unanswered(packet.made) if packet.made else []
        return bool(packet.made)

    def _make(self, packet: Packet, handle: Any, parts: Parts) -> None:
        packet.made = [*packet.made, self._lines.call(handle, parts)]
        packet.ahead -= 1

    def _carry(self) -> None:
        """Make each scheduled call at its time, in the transport's thread."""
        while True:
            with self._changed:
                while not self._later or self._later[0][0] > now():
                    self._changed.wait(self._later[0][0] - now() if self._later else None)
                make = heapq.heappop(self._later)[2]
            make()
