"""All-to-all strategy: no servers, and each worker sends its deltas to all others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from hogwild.messaging import compression as compressions
from hogwild.messaging.job import RunConfig
from hogwild.messaging.messages import number_of
from hogwild.messaging.node import Role, Roles
from hogwild.registry import invalid_parameter
from hogwild.strategies.parameter_server import COMBINATIONS
from hogwild.strategies.roles import peer_roles
from hogwild.strategies.roles.broadcast_worker import BroadcastWorker
from hogwild.strategies.roles.exchanges import SumExchange
from hogwild.strategies.roles.membership import Membership
from hogwild.strategies.roles.synchronous_worker import SynchronousWorker
from hogwild.strategies.strategy import Interval, Strategy, check_interval, check_workers
from hogwild.topologies import Clique
from hogwild.topologies.mixing_matrix import about


@dataclass(frozen=True, slots=True)
class AllToAll(Strategy):
    """All-to-all exchange of deltas, for a small number of workers.

    Each of n workers holds all parameters. An exchange takes n * (n - 1) messages. When ``synchronous``, all workers
    train ``period`` updates, wait for the deltas of all others and add their mean. So the replicas stay equal.
    Otherwise each worker adds the deltas of others in full when they arrive, and no worker waits.

    Parameters
    ----------
    workers : int, optional
        Number of workers. Left out, there is one worker per core.
    synchronous : bool, default True
        Whether workers wait for each other after each burst.
    period : int or "auto", default "auto"
        Updates of a worker between two exchanges. With "auto" the run measures what an exchange and an update cost, and
        chooses an interval at which exchanges take little time. The textbook has 1, as runs of a Module
        and simulated runs do.
    combine : {"mean", "sum"}, optional
        Combination of the deltas. Left out, it is the mean when synchronous and the sum otherwise.
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
    >>> AllToAll(workers=3, synchronous=False).bounded
    False
    """

    workers: int | None = None
    synchronous: bool = True
    period: Interval = "auto"
    combine: str | None = None
    compression: Any = None
    within: Strategy | str | None = None

    passes_messages = True
    weighs_changes = True

    def __post_init__(self) -> None:
        check_workers(self.workers)
        check_interval("period", self.period)
        if self.combine not in (None, *COMBINATIONS):
            raise invalid_parameter("combine", "'mean', 'sum' or None", self.combine)
        compressions.named(self.compression)

    @property
    def bounded(self) -> bool:
        """Whether workers wait for each other."""
        return self.synchronous

    def with_interval(self, updates: int) -> Strategy:
        """Return the strategy with this number of updates between two exchanges, unless the user gave another."""
        return replace(self, period=updates) if self.period == "auto" else self

    def roles(self, config: RunConfig) -> Roles:
        """Return functions that make the roles of a coordinator and the workers."""
        compression = compressions.named(self.compression)
        mean = (self.combine or ("mean" if self.synchronous else "sum")) == "mean"

        def works(number: int) -> Role:
            if self.synchronous:
                return SynchronousWorker(number, config, self.interval, SumExchange(number, config, mean, compression))
            return BroadcastWorker(number, config, self.interval, mean, compression)

        return peer_roles(config, self.synchronous, partial(Membership, _about, replicas=self.synchronous), works)


def _about(members: tuple[str, ...]) -> dict[str, Any]:
    return about(Clique(), tuple(number_of(name) for name in members))
