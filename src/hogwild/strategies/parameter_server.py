"""Servers have the parameters; workers pull them, train, and push what they have changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hogwild.errors import ParameterError
from hogwild.messaging import compression as compressions
from hogwild.messaging.run_config import RunConfig
from hogwild.registry import invalid_parameter
from hogwild.strategies.delay_correction import Correction
from hogwild.strategies.message_passing import parts_of, server_roles
from hogwild.strategies.roles.parameter_server import ParameterServerRole
from hogwild.strategies.roles.parameter_server_worker import ParameterServerWorker
from hogwild.strategies.strategy import Roles, Strategy, check_count, check_workers

COMBINATIONS = ("mean", "sum")


@dataclass(frozen=True, slots=True)
class ParameterServer(Strategy):
    """Asynchronous SGD with servers (Downpour, Dean et al. 2012; bounded staleness, Ho et al. 2013).

    A worker pushes its change after every ``push_every`` updates and pulls after every ``pull_every``. With
    ``staleness=None`` nobody ever waits. With a number, nobody trains on parameters that lack what the slowest worker
    did more than so many pushes ago; with 0 workers go in step. A worker that dies is not waited for.

    Changes are added each in full ("sum"), as they come, or their "mean" is; left out, it is the sum without a bound
    and the mean with one. ``correction`` makes up for delay: :class:`DelayAdaptive` or :class:`DelayCompensation`.
    ``compression`` is "half", "top-k:0.01" or an object. ``within`` is what each node does on its own cores.

    >>> ParameterServer(workers=4, staleness=2, push_every=8).bounded
    True
    """

    workers: int | None = None
    shards: int = 1
    staleness: int | None = None
    push_every: int = 1
    pull_every: int | None = None
    combine: str | None = None
    correction: Correction | None = None
    compression: Any = None
    within: Strategy | str | None = None

    passes_messages = True

    def __post_init__(self) -> None:
        check_workers(self.workers)
        for name in ("shards", "push_every"):
            check_count(name, getattr(self, name))
        if self.staleness is not None and (not isinstance(self.staleness, int) or self.staleness < 0):
            raise invalid_parameter(
                "staleness", "a number of pushes of at least 0, or None for no bound", self.staleness
            )
        if self.combine not in (None, *COMBINATIONS):
            raise invalid_parameter("combine", "'mean', 'sum' or None", self.combine)
        if self.pull_every is not None:
            check_count("pull_every", self.pull_every)
            if self.pull_every % self.push_every:
                raise ParameterError(
                    "'pull_every' must be a multiple of 'push_every': parameters are pulled after a push. "
                    f"Got {self.pull_every} and {self.push_every}."
                )
        if self.bounded and self.pushes_a_pull - 1 > (self.staleness or 0):
            raise ParameterError(
                f"With a pull after {self.pushes_a_pull} pushes, parameters are older than staleness={self.staleness} "
                "allows: pull more often, or allow more."
            )
        compressions.named(self.compression)

    @property
    def bounded(self) -> bool:
        """Whether workers wait for others."""
        return self.staleness is not None

    @property
    def pushes_a_pull(self) -> int:
        """How many pushes go by between two pulls."""
        return (self.pull_every or self.push_every) // self.push_every

    @property
    def period(self) -> int:
        """Updates between two exchanges."""
        return self.push_every

    def roles(self, config: RunConfig) -> Roles:
        """A coordinator, servers and workers."""
        # Between two pulls parameters grow older by a push each time: a bound must hold for the last of them.
        bound = None if self.staleness is None else self.staleness - (self.pushes_a_pull - 1)
        mean = (self.combine or ("mean" if self.bounded else "sum")) == "mean"
        parts = parts_of(config.size, self.shards)
        return server_roles(
            config,
            self.shards,
            self.bounded,
            lambda number, start, stop: ParameterServerRole(
                number, start, stop, config, staleness=bound, mean=mean, correction=self.correction
            ),
            lambda: ParameterServerWorker(
                config, parts, push_every=self.push_every, pull_every=self.pushes_a_pull, rounds=self.bounded,
                compression=compressions.named(self.compression),
            ),
        )  # fmt: skip
