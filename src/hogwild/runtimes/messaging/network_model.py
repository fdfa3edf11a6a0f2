"""Network model: latency, bandwidth, loss, duplication and reordering of messages between nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hogwild.delays import Delay, named
from hogwild.registry import invalid_parameter


@dataclass(frozen=True, slots=True)
class Link:
    """Network link of each sender.

    Parameters
    ----------
    latency : float, str or Delay, default 1e-4
        Duration of a message: seconds, a distribution of :mod:`hogwild.delays`, or its name with numbers.
    bandwidth : float, default 1.25e9
        Bytes per second that each sender has for all its messages.
    loss : float, default 0.0
        Share of the messages that are lost, at least 0 and below 1.
    duplication : float, default 0.0
        Share of the messages that arrive twice, at least 0 and below 1.
    reordering : float, default 0.0
        Share of the messages whose latency is 1 to 10 times as long, at least 0 and below 1.

    Raises
    ------
    ParameterError
        If ``bandwidth`` is not positive, or if a share is outside its range.
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
        """Draw the latencies of the copies of a message.

        Parameters
        ----------
        random : numpy.random.Generator
            Source of random numbers.
        sender : int
            Number of the worker that sends; -1 for other nodes.
        count : int
            Number of messages that the sender has sent.

        Returns
        -------
        list of float
            Seconds until each copy arrives: one number, two for a duplicated message, none for a lost one.
        """
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
        """Whether every message arrives, so that ``loss`` is 0."""
        return not self.loss
