"""What strategies in one memory have in common: how many workers, and how they share the parameters."""

from __future__ import annotations

from typing import Literal, Protocol

from hogwild.machine import usable_cores
from hogwild.registry import invalid_parameter

Access = Literal["free", "locked", "turns"]


class SharedMemoryStrategy(Protocol):
    """A strategy whose workers share one memory.

    ``access`` says how workers keep out of each other's way around one term: not at all, by locks on its coordinates,
    or by taking turns. With ``replicas`` each has parameters of its own and they are averaged when workers meet.
    """

    @property
    def workers(self) -> int | None:
        """How many workers; None: one per core."""

    @property
    def access(self) -> Access:
        """How workers keep out of each other's way."""

    @property
    def replicas(self) -> bool:
        """Whether each worker has parameters of its own."""


def check_workers(workers: int | None) -> None:
    """Refuse a number of workers that is not one."""
    if workers is not None and (not isinstance(workers, int) or isinstance(workers, bool) or workers < 1):
        raise invalid_parameter("workers", "a positive integer, or None for one per core", workers)


def check_count(name: str, value: int) -> None:
    """Refuse what is no positive integer."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise invalid_parameter(name, "a positive integer", value)


def worker_count(strategy: SharedMemoryStrategy) -> int:
    """How many workers a strategy has on this machine.

    >>> from hogwild.strategies import Hogwild, Serial
    >>> worker_count(Hogwild(workers=3)), worker_count(Serial())
    (3, 1)
    """
    return strategy.workers or usable_cores()
