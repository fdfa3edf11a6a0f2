"""What lies between participants: how long messages take, and what becomes of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hogwild.delays import Delay, named
from hogwild.registry import invalid_parameter


@dataclass(frozen=True, slots=True)
class Link:
    """``latency`` seconds, and ``bandwidth`` bytes a second that each sender has for all it sends.

    ``loss`` and ``duplication`` are shares of the messages, ``reordering`` the share that takes up to ten times
    as long.
    """

    latency: Delay | float | str = 1e-4
    bandwidth: float = 1.25e9
    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "latency", named(self.latency))
        if not self.bandwidth > 0:
            raise invalid_parameter("bandwidth", "a positive number of bytes a second", self.bandwidth)
        for name in ("loss", "duplication", "reordering"):
            if not 0 <= getattr(self, name) < 1:
                raise invalid_parameter(name, "a share of at least 0 and below 1", getattr(self, name))

    def arrivals(self, random: np.random.Generator, sender: int, count: int) -> list[float]:
        """After how many seconds on the way a message arrives: once, twice, or never."""
        if self.loss and random.random() < self.loss:
            return []
        times = 2 if self.duplication and random.random() < self.duplication else 1
        first = self._latency(random, sender, count)
        return [first] if times == 1 else [first, self._latency(random, sender, count)]

    def _latency(self, random: np.random.Generator, sender: int, count: int) -> float:
        seconds = named(self.latency).draw(random, sender, count)
        if self.reordering and random.random() < self.reordering:
            seconds *= 1 + 9 * random.random()
        return seconds

    @property
    def kind(self) -> bool:
        """Whether everything arrives."""
        return not self.loss
