"""Injected faults: crashes and restarts of nodes, and links that delay, lose, duplicate and reorder messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from hogwild.delays import Delay, is_seconds, named
from hogwild.registry import invalid_parameter

_NODE = re.compile(r"coordinator|(worker|server)-\d+")


@dataclass(frozen=True, slots=True)
class Crash:
    """Crash of one node at a given time, with or without a restart.

    A crash of the coordinator ends the run. A crash of a node that is not running has no effect.

    Parameters
    ----------
    who : str
        Name of the node, such as "worker-1", "server-0" or "coordinator".
    at : float
        Seconds after the start of the run at which the node crashes.
    back_after : float, optional
        Seconds from the crash to the restart. By default the node never restarts.

    Raises
    ------
    ParameterError
        If ``who`` is not the name of a node, or if ``at`` or ``back_after`` is negative or infinite.
    """

    who: str
    at: float
    back_after: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.who, str) or not _NODE.fullmatch(self.who):
            raise invalid_parameter("who", "the name of a node, such as 'worker-1' or 'server-0'", self.who)
        if not is_seconds(self.at):
            raise invalid_parameter("at", "a number of seconds", self.at)
        if self.back_after is not None and not is_seconds(self.back_after):
            raise invalid_parameter("back_after", "a number of seconds, or None for never", self.back_after)


@dataclass(frozen=True, slots=True)
class Crashes:
    """Random crashes of all workers, and of all servers on request, each followed by a restart.

    The seconds between two crashes of a node are exponentially distributed.

    Parameters
    ----------
    every : float
        Mean seconds between two crashes of each node.
    back_after : float, default 1.0
        Seconds from a crash to the restart.
    servers : bool, default False
        Whether servers crash too.

    Raises
    ------
    ParameterError
        If ``every`` is not positive, or if ``back_after`` is negative or infinite.
    """

    every: float
    back_after: float = 1.0
    servers: bool = False

    def __post_init__(self) -> None:
        if not (is_seconds(self.every) and self.every > 0):
            raise invalid_parameter("every", "a positive number of seconds", self.every)
        if not is_seconds(self.back_after):
            raise invalid_parameter("back_after", "a number of seconds", self.back_after)


Fault = Crash | Crashes
MANY = 1000  # number of random crashes that are drawn for each node


def checked(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Return faults as a tuple; raise ``ParameterError`` for an element that is not a fault."""
    faults = tuple(faults)
    for fault in faults:
        if not isinstance(fault, (Crash, Crashes)):
            raise invalid_parameter("faults", "Crash(who, at, back_after) and Crashes(every, back_after)", fault)
    return faults


def planned(faults: Iterable[Fault], names: Iterable[str], random: np.random.Generator) -> Iterator[Crash]:
    """Yield all crashes of a run, for the named nodes.

    Random times are drawn in advance, 1000 for each node, so that the events of the run do not change them.

    >>> list(planned([Crash("worker-1", at=2.0)], ["worker-0", "worker-1"], np.random.default_rng(0)))
    [Crash(who='worker-1', at=2.0, back_after=None)]
    """
    names = sorted(names)
    for fault in faults:
        if isinstance(fault, Crash):
            yield fault
            continue
        kinds = ("worker", "server") if fault.servers else ("worker",)
        for name in names:
            if name.startswith(kinds):
                for at in np.cumsum(random.exponential(fault.every, MANY)):
                    yield Crash(name, float(at), fault.back_after)


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
        object.__setattr__(self, "latency", named(self.latency, "latency"))
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
