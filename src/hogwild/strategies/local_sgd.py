"""Train apart for a while, then meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hogwild.messaging import compression as compressions
from hogwild.messaging.run_config import RunConfig
from hogwild.registry import invalid_parameter
from hogwild.strategies.message_passing import synchronous_server_roles
from hogwild.strategies.roles.outer_optimiser import Nesterov
from hogwild.strategies.strategy import Roles, Strategy, check_count, check_workers


@dataclass(frozen=True, slots=True)
class LocalSGD(Strategy):
    """Workers take ``period`` steps each on their own, then all go on from their mean (Stich 2019, arXiv 1805.09767).

    With a period of 1 it is :class:`Synchronous`; the longer it is, the less is sent, and the further workers drift
    apart in between.

    >>> LocalSGD(workers=4, period=16).bounded
    True
    """

    workers: int | None = None
    period: int = 8
    compression: Any = None
    within: Strategy | str | None = None

    passes_messages = True

    def __post_init__(self) -> None:
        check_workers(self.workers)
        check_count("period", self.period)
        compressions.named(self.compression)

    def roles(self, config: RunConfig) -> Roles:
        """A coordinator, one server that has the mean, and workers."""
        return synchronous_server_roles(config, self.period, compression=compressions.named(self.compression))


@dataclass(frozen=True, slots=True)
class DiLoCo(Strategy):
    """Local steps, and one step of Nesterov's along their mean when workers meet (Douillard et al. 2023, 2311.08105).

    ``rate`` and ``momentum`` are those of the outer step; with 1 and 0 it is :class:`LocalSGD`.
    """

    workers: int | None = None
    period: int = 32
    rate: float = 0.7
    momentum: float = 0.9
    compression: Any = None
    within: Strategy | str | None = None

    passes_messages = True

    def __post_init__(self) -> None:
        check_workers(self.workers)
        check_count("period", self.period)
        if not self.rate > 0:
            raise invalid_parameter("rate", "a positive number", self.rate)
        if not 0 <= self.momentum < 1:
            raise invalid_parameter("momentum", "at least 0 and below 1", self.momentum)
        compressions.named(self.compression)

    def roles(self, config: RunConfig) -> Roles:
        """The same with a step of the server's own."""
        compression = compressions.named(self.compression)
        return synchronous_server_roles(
            config, self.period, lambda: Nesterov(self.rate, self.momentum), compression=compression
        )
