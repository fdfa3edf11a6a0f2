"""Workers on elastic bands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hogwild.messaging import compression as compressions
from hogwild.messaging.run_config import RunConfig
from hogwild.registry import invalid_parameter
from hogwild.strategies.message_passing import parts_of, server_roles
from hogwild.strategies.roles.easgd_worker import EASGDWorker
from hogwild.strategies.roles.parameter_server import ParameterServerRole
from hogwild.strategies.roles.parameter_server_worker import ParameterServerWorker
from hogwild.strategies.strategy import Roles, Strategy, check_count, check_workers


@dataclass(frozen=True, slots=True)
class ElasticAveraging(Strategy):
    """Elastic averaging, asynchronous (EASGD, Zhang et al. 2015, arXiv 1412.6651).

    Every worker has parameters of its own. After ``period`` steps it and the centre move towards each other by
    ``elasticity`` times what lies between them; left out, that is 0.9 divided by the number of workers. The result is
    the centre. One worker alone is on no band: it goes on from the centre each time.
    """

    workers: int | None = None
    period: int = 8
    elasticity: float | None = None
    shards: int = 1
    compression: Any = None
    within: Strategy | str | None = None

    bounded: ClassVar[bool] = False
    mixes: ClassVar[bool] = True  # parameters, instead of adding changes to them

    passes_messages = True

    def __post_init__(self) -> None:
        check_workers(self.workers)
        for name in ("period", "shards"):
            check_count(name, getattr(self, name))
        if self.elasticity is not None and not 0 < self.elasticity < 1:
            raise invalid_parameter("elasticity", "above 0 and below 1, or None", self.elasticity)
        compressions.named(self.compression)

    def roles(self, config: RunConfig) -> Roles:
        """A coordinator, servers that have the centre, and workers."""
        parts, compression = parts_of(config.size, self.shards), compressions.named(self.compression)
        share = self.elasticity or 0.9 / config.workers

        def works() -> Any:
            if config.workers == 1:
                return ParameterServerWorker(config, parts, push_every=self.period)
            return EASGDWorker(config, parts, self.period, share, compression)

        return server_roles(
            config,
            self.shards,
            False,
            lambda number, start, stop: ParameterServerRole(number, start, stop, config),
            works,
        )
