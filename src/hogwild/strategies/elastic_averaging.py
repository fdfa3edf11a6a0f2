"""Elastic-averaging strategy: workers with their own parameters, and a centre on the servers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from hogwild.messaging import compression as compressions
from hogwild.messaging.job import RunConfig
from hogwild.messaging.node import Role, Roles
from hogwild.registry import invalid_parameter
from hogwild.strategies.roles import parts_of, server_roles
from hogwild.strategies.roles.easgd_worker import EASGDWorker
from hogwild.strategies.roles.parameter_server import ParameterServerRole
from hogwild.strategies.roles.parameter_server_worker import ParameterServerWorker
from hogwild.strategies.strategy import (
    Interval,
    Strategy,
    check_count,
    check_interval,
    check_run_ahead,
    check_workers,
)


@dataclass(frozen=True, slots=True)
class ElasticAveraging(Strategy):
    """Asynchronous elastic averaging (EASGD, Zhang et al. 2015).

    Every worker has its own parameters. After ``period`` updates the worker and the centre move towards each other,
    each by ``elasticity`` times their difference. The result is the centre. A run with one worker has no elastic force:
    the worker continues from the centre each time.

    Parameters
    ----------
    workers : int, optional
        Number of workers. Left out, there is one worker per core.
    period : int or "auto", default "auto"
        Updates of a worker between two exchanges with the centre. With "auto" the run measures what an exchange and an
        update cost, and chooses an interval at which exchanges take little time. The textbook has 8, as simulated runs
        and runs of a Module do.
    elasticity : float, optional
        Fraction of the difference, above 0 and below 1. Left out, it is 0.9 divided by the number of workers.
    shards : int, default 1
        Number of servers that hold the centre.
    run_ahead : int, optional
        Most bursts of a worker while a pull of the centre is on its way; then it waits. With 0 it waits for every pull.
        Left out, it is 1,024 in a simulated network, and 1 in a real one.
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
    Zhang, Choromanska and LeCun 2015, arXiv 1412.6651.
    """

    workers: int | None = None
    period: Interval = "auto"
    elasticity: float | None = None
    shards: int = 1
    run_ahead: int | None = None
    compression: Any = None
    within: Strategy | str | None = None

    bounded: ClassVar[bool] = False
    mixes: ClassVar[bool] = True  # Workers mix parameters, instead of adding deltas to them.

    passes_messages = True
    textbook_interval: ClassVar[int] = 8

    def __post_init__(self) -> None:
        check_workers(self.workers)
        check_interval("period", self.period)
        check_count("shards", self.shards)
        check_run_ahead(self.run_ahead)
        if self.elasticity is not None and not 0 < self.elasticity < 1:
            raise invalid_parameter("elasticity", "above 0 and below 1, or None", self.elasticity)
        compressions.named(self.compression)

    @property
    def servers(self) -> int:
        """The number of servers among which the parameters are divided."""
        return self.shards

    def with_interval(self, updates: int) -> Strategy:
        """Return the strategy with this number of updates between two exchanges, unless the user gave another."""
        return replace(self, period=updates) if self.period == "auto" else self

    def roles(self, config: RunConfig) -> Roles:
        """Return functions that make the roles of a coordinator, the servers with the centre, and the workers."""
        parts, compression = parts_of(config, self.shards), compressions.named(self.compression)
        share = self.elasticity or 0.9 / config.workers

        def works() -> Role:
            if config.workers == 1:
                return ParameterServerWorker(config, parts, push_every=self.interval)
            return EASGDWorker(config, parts, self.interval, share, compression, config.run_ahead)

        return server_roles(
            config,
            self.shards,
            False,
            lambda number, start, stop: ParameterServerRole(number, start, stop, config),
            works,
        )
