"""The contract of strategies: how workers share the parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from hogwild.errors import ParameterError
from hogwild.machine import usable_cores
from hogwild.messaging.node import Role
from hogwild.messaging.run_config import RunConfig
from hogwild.registry import invalid_parameter

if TYPE_CHECKING:
    from hogwild.strategies.synchronous import LargeMinibatch

Access = Literal["free", "locked", "turns"]
"""How workers in one memory keep out of each other's way: not at all, by locks on coordinates, by taking turns."""

Roles = Mapping[str, Callable[[], Role]]
"""For each node the function that makes its role, at the start and after each crash."""


class Strategy:
    """How workers share the parameters, in one memory or by messages.

    A strategy derives from this class and says ``shares_memory``, ``passes_messages`` or both; all else has a default.
    Strategies are frozen data classes; their options, such as ``workers``, are fields.
    """

    __slots__ = ()

    shares_memory: ClassVar[bool] = False
    passes_messages: ClassVar[bool] = False
    uses_all_reduce: ClassVar[bool] = False  # whether processes exchange gradients at each step

    @property
    def workers(self) -> int | None:
        """How many workers; None: one per core."""
        return None

    # In one memory

    @property
    def access(self) -> Access:
        """How workers keep out of each other's way."""
        return "free"

    @property
    def replicas(self) -> bool:
        """Whether each worker has parameters of its own, which are averaged when workers meet."""
        return False

    @property
    def buffer(self) -> int | str:
        """Rows between two merges of a worker's replicas of frequent coordinates; 0: none; "auto": where they pay."""
        return 0

    # By messages

    @property
    def within(self) -> Strategy | str | None:
        """The strategy in memory that each node uses on its own cores; None: one worker a node."""
        return None

    @property
    def period(self) -> int:
        """Terms of one worker between two exchanges."""
        return 1

    @property
    def bounded(self) -> bool:
        """Whether workers wait for each other."""
        return True

    @property
    def combine(self) -> str | None:
        """How changes of several workers are combined, where that is an option: "mean" or "sum"."""
        return None

    @property
    def mixes(self) -> bool:
        """Whether workers mix parameters, instead of adding changes to them."""
        return False

    def roles(self, config: RunConfig) -> Roles:
        """The role of each node, where workers send each other messages."""
        raise ParameterError(
            f"The strategy {self!r} has its workers in one memory: use runtime=Threads(), or a strategy by messages "
            "such as ParameterServer()."
        )

    # Large minibatches

    @property
    def recipe(self) -> LargeMinibatch | None:
        """What to change for a minibatch that is large."""
        return None

    def total(self, batch: int, workers: int | None = None) -> int:
        """How many samples a step takes, when each worker's batch has ``batch``."""
        return batch


def check_workers(workers: int | None) -> None:
    """Refuse a number of workers that is not one."""
    if workers is not None and (not isinstance(workers, int) or isinstance(workers, bool) or workers < 1):
        raise invalid_parameter("workers", "a positive integer, or None for one per core", workers)


def check_count(name: str, value: int) -> None:
    """Refuse what is no positive integer."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise invalid_parameter(name, "a positive integer", value)


def worker_count(strategy: Strategy) -> int:
    """How many workers a strategy has on this machine.

    >>> from hogwild.strategies import Hogwild, Serial
    >>> worker_count(Hogwild(workers=3)), worker_count(Serial())
    (3, 1)
    """
    return strategy.workers or usable_cores()
