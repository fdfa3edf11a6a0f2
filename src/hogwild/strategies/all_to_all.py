"""No servers: every worker tells all others what it has changed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from hogwild.messaging import compression as compressions
from hogwild.messaging.messages import number_of
from hogwild.messaging.node import Role
from hogwild.messaging.run_config import RunConfig
from hogwild.registry import invalid_parameter
from hogwild.strategies.message_passing import peer_roles
from hogwild.strategies.parameter_server import COMBINATIONS
from hogwild.strategies.roles.broadcast_worker import BroadcastWorker
from hogwild.strategies.roles.membership import Membership
from hogwild.strategies.roles.mixing import SumExchange
from hogwild.strategies.roles.synchronous_worker import SynchronousWorker
from hogwild.strategies.strategy import Roles, Strategy, check_count, check_workers
from hogwild.topologies import Clique
from hogwild.topologies.mixing_matrix import about


@dataclass(frozen=True, slots=True)
class AllToAll(Strategy):
    """A small cluster of equals: n workers, each with all parameters, and n * (n - 1) messages a round.

    When ``synchronous``, all train ``period`` updates, wait for everybody's change and add the mean, so they stay the
    same. Else each adds the changes of others in full as they come, and nobody waits. ``combine`` is "mean" or "sum",
    for those who want the other one. ``compression`` is "half", "top-k:0.01" or an object. ``within`` is what each node
    does on its own cores.

    >>> AllToAll(workers=3, synchronous=False).bounded
    False
    """

    workers: int | None = None
    synchronous: bool = True
    period: int = 1
    combine: str | None = None
    compression: Any = None
    within: Strategy | str | None = None

    passes_messages = True

    def __post_init__(self) -> None:
        check_workers(self.workers)
        check_count("period", self.period)
        if self.combine not in (None, *COMBINATIONS):
            raise invalid_parameter("combine", "'mean', 'sum' or None", self.combine)
        compressions.named(self.compression)

    @property
    def bounded(self) -> bool:
        """Whether workers wait for others."""
        return self.synchronous

    def roles(self, config: RunConfig) -> Roles:
        """A coordinator, and workers."""
        compression = compressions.named(self.compression)
        mean = (self.combine or ("mean" if self.synchronous else "sum")) == "mean"

        def works(number: int) -> Role:
            if self.synchronous:
                return SynchronousWorker(number, config, self.period, SumExchange(number, config, mean, compression))
            return BroadcastWorker(number, config, self.period, mean, compression)

        return peer_roles(config, self.synchronous, partial(Membership, _about, replicas=self.synchronous), works)


def _about(members: tuple[str, ...]) -> dict[str, Any]:
    return about(Clique(), tuple(number_of(name) for name in members))
