"""Lines on which calls are held up, lost and doubled, to see what becomes of a run where they are."""

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
    """A call that is to be made so many times more, and those that were made."""

    ahead: int
    made: list[Any] = field(default_factory=list)


class FaultyTransport:
    """Makes the calls of one participant as a link says: some late, some twice, some never."""

    def __init__(self, link: Link, seed: Sequence[int], lines: Transport) -> None:
        self._link, self._lines = link, lines
        self._random = np.random.default_rng(seed)
        self._free = 0.0  # since when the line has nothing to carry
        self._numbers = count()
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._changed = threading.Condition()
        threading.Thread(target=self._carry, name="hogwild-rough", daemon=True).start()

    def call(self, handle: Any, parts: Parts) -> Packet:
        """Have a call made, some time."""
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
        """Which of them are still on their way. What is lost is not: nobody waits for it."""
        return [packet for packet in packets if packet.ahead or self._unanswered_calls(packet)]

    def wait(self, packets: list[Packet], limit: float) -> None:
        """Wait until one of them has arrived and is answered, or for so many seconds."""
        until = now() + limit
        while now() < until and len(self.unanswered(packets)) == len(packets):
            time.sleep(LOOK)  # what is still on its way cannot be waited for

    def _unanswered_calls(self, packet: Packet) -> bool:
        packet.made = self._lines.unanswered(packet.made) if packet.made else []
        return bool(packet.made)

    def _make(self, packet: Packet, handle: Any, parts: Parts) -> None:
        packet.made = [*packet.made, self._lines.call(handle, parts)]
        packet.ahead -= 1

    def _carry(self) -> None:
        while True:
            with self._changed:
                while not self._later or self._later[0][0] > now():
                    self._changed.wait(self._later[0][0] - now() if self._later else None)
                make = heapq.heappop(self._later)[2]
            make()
