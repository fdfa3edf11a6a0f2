"""Local SGD strategies: workers train independently for a period, and then combine their parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from hogwild.messaging import compression as compressions
from hogwild.messaging.job import RunConfig
from hogwild.messaging.node import Roles
from hogwild.registry import invalid_parameter
from hogwild.strategies.roles import synchronous_server_roles
from hogwild.strategies.roles.outer_optimiser import Nesterov
from hogwild.strategies.strategy import Interval, Strategy, check_interval, check_workers


@dataclass(frozen=True, slots=True)
class LocalSGD(Strategy):
    """Local SGD (Stich 2019): each worker takes ``period`` steps alone, then all continue from their mean.

    With a period of 1 the strategy equals :class:`Synchronous`. A longer period sends less data, but the workers drift
    further apart within a period.

    Parameters
    ----------
    workers : int, optional
        Number of workers. Left out, there is one worker per core.
    period : int or "auto", default "auto"
        Updates of a worker between two averages. With "auto" the run measures what an exchange and an update cost, and
        chooses an interval at which exchanges take little time. The textbook has 8, as runs of a Module
        and simulated runs do.
    compression : str or Compression, optional
        Compression of deltas: "half", "top-k:0.01" or an object. Left out, deltas are sent in full.
    within : Strategy or str, optional
        Shared-memory strategy that each node uses on its own cores. Left out, a node trains on one core.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> LocalSGD(workers=4, period=16).bounded
    True

    References
    ----------
    Stich 2019, arXiv 1805.09767.
    """

    workers: int | None = None
    period: Interval = "auto"
    compression: Any = None
    within: Strategy | str | None = None

    passes_messages = True
    weighs_changes = True
    textbook_interval: ClassVar[int] = 8

    def __post_init__(self) -> None:
        check_workers(self.workers)
        check_interval("period", self.period)
        compressions.named(self.compression)

    @property
    def exchanges_changes(self) -> bool:
        """Whether workers can keep their parameters, and pull only what others have changed."""
        return self.compression is None

    def with_interval(self, updates: int) -> Strategy:
        """Return the strategy with this number of updates between two exchanges, unless the user gave another."""
        return replace(self, period=updates) if self.period == "auto" else self

    def roles(self, config: RunConfig) -> Roles:
        """Return functions that make the roles of a coordinator, one server that holds the mean, and the workers."""
        return synchronous_server_roles(config, self.interval, compression=compressions.named(self.compression))


@dataclass(frozen=True, slots=True)
class DiLoCo(Strategy):
    """DiLoCo (Douillard et al. 2023): local steps, then one Nesterov step of the server along their mean delta.

    Parameters
    ----------
    workers : int, optional
        Number of workers. Left out, there is one worker per core.
    period : int or "auto", default "auto"
        Updates of a worker between two outer steps. With "auto" the run measures what an exchange and an update cost,
        and chooses an interval at which exchanges take little time. The textbook has 32, as runs of a
        Module and simulated runs do.
    rate : float, default 0.7
        Step size of the outer step. With ``rate=1`` and ``momentum=0`` the strategy equals :class:`LocalSGD`.
    momentum : float, default 0.9
        Momentum of the outer step, at least 0 and below 1.
    compression : str or Compression, optional
        Compression of deltas: "half", "top-k:0.01" or an object. Left out, deltas are sent in full.
    within : Strategy or str, optional
        Shared-memory strategy that each node uses on its own cores. Left out, a node trains on one core.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Douillard et al. 2023, arXiv 2311.08105.
    """

    workers: int | None = None
    period: Interval = "auto"
    rate: float = 0.7
    momentum: float = 0.9
    compression: Any = None
    within: Strategy | str | None = None

    passes_messages = True
    textbook_interval: ClassVar[int] = 32

    def __post_init__(self) -> None:
        check_workers(self.workers)
        check_interval("period", self.period)
        if not self.rate > 0:
            raise invalid_parameter("rate", "a positive number", self.rate)
        if not 0 <= self.momentum < 1:
            raise invalid_parameter("momentum", "at least 0 and below 1", self.momentum)
        compressions.named(self.compression)

    def with_interval(self, updates: int) -> Strategy:
        """Return the strategy with this number of updates between two exchanges, unless the user gave another."""
        return replace(self, period=updates) if self.period == "auto" else self

    def roles(self, config: RunConfig) -> Roles:
        """Return functions that make the roles of a coordinator, one server with a Nesterov step, and the workers."""
        compression = compressions.named(self.compression)
        return synchronous_server_roles(
            config, self.interval, lambda: Nesterov(self.rate, self.momentum), compression=compression
        )
