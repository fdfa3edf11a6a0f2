"""Gossip strategy: no servers, and workers average their parameters with those of their neighbours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from hogwild import topologies
from hogwild.errors import ParameterError
from hogwild.messaging import compression as compressions
from hogwild.messaging.compression import Half
from hogwild.messaging.job import RunConfig
from hogwild.messaging.messages import number_of
from hogwild.messaging.node import Role, Roles
from hogwild.strategies.roles import peer_roles
from hogwild.strategies.roles.adpsgd_worker import ADPSGDWorker
from hogwild.strategies.roles.exchanges import AverageExchange, MixingPlan
from hogwild.strategies.roles.membership import Membership
from hogwild.strategies.roles.synchronous_worker import SynchronousWorker
from hogwild.strategies.strategy import Interval, Strategy, check_interval, check_workers
from hogwild.topologies.mixing_matrix import about, mixing


@dataclass(frozen=True, slots=True)
class Gossip(Strategy):
    """Decentralised SGD: each worker has its own parameters and exchanges them only with its neighbours.

    When ``synchronous``, each worker trains ``period`` updates, sends its parameters to its neighbours, waits for
    theirs and mixes them (D-PSGD, Lian et al. 2017). Mixing weights are those of Metropolis and Hastings; in a directed
    graph mixing is push-sum. Otherwise a worker and one random neighbour move to their midpoint after each ``period``,
    and no worker waits for a round (AD-PSGD, Lian et al. 2018).

    The result is the mean over all workers. ``consensus`` in the record of each epoch is the root-mean-square distance
    of the workers from that mean, divided by its norm. Workers that join or leave change the topology.

    Parameters
    ----------
    topology : str, Topology or networkx graph, default "ring"
        Neighbours of each worker: "ring", "clique", "star", "grid", "torus", "hypercube", "exponential",
        "one-peer-exponential", "random-regular:4", an object of :mod:`hogwild.topologies`, or a graph of networkx.
    synchronous : bool, default True
        Whether workers wait for their neighbours in each round.
    workers : int, optional
        Number of workers. Left out, there is one worker per core.
    period : int or "auto", default "auto"
        Updates of a worker between two exchanges. With "auto" the run measures what an exchange and an update cost, and
        chooses an interval at which exchanges take little time. The textbook has 1, as runs of a Module
        and simulated runs do.
    compression : str or Half, optional
        "half" sends parameters in half precision. Left out, they are sent in full.
    within : Strategy or str, optional
        Shared-memory strategy that each node uses on its own cores. Left out, a node trains on one core.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or the topology does not fit the number of workers.

    Examples
    --------
    >>> Gossip("torus", workers=12).bounded
    True

    References
    ----------
    Lian et al. 2017, arXiv 1705.09056; Lian et al. 2018, arXiv 1710.06952; Assran et al. 2019 (push-sum), arXiv
    1811.10792.
    """

    topology: Any = "ring"
    synchronous: bool = True
    workers: int | None = None
    period: Interval = "auto"
    compression: Any = None
    within: Strategy | str | None = None

    mixes: ClassVar[bool] = True  # Workers mix parameters, instead of adding deltas to them.

    passes_messages = True
    weighs_changes = True

    def __post_init__(self) -> None:
        check_workers(self.workers)
        check_interval("period", self.period)
        object.__setattr__(self, "topology", topologies.named(self.topology))
        if not isinstance(compressions.named(self.compression), Half | None):
            raise ParameterError(
                "Here parameters are sent, and some of them would not do: 'compression' must be None or 'half'. "
                f"Got {self.compression!r}; AllToAll() and ParameterServer() send changes, of which some can wait."
            )
        if self.workers is not None:
            self.topology.check(self.workers)

    @property
    def bounded(self) -> bool:
        """Whether workers wait for each other."""
        return self.synchronous

    def neighbourhood(self, workers: int) -> float:
        """Return the number of workers among which an exchange spreads the change of one, itself included.

        It is the inverse of the largest weight that a worker gives to its own parameters.

        >>> Gossip("ring").neighbourhood(8), Gossip(synchronous=False).neighbourhood(8)
        (3.0, 2.0)
        """
        if not self.synchronous:
            return min(2.0, workers)
        members = tuple(range(workers))
        rounds = [mixing(self.topology, members, number) for number in range(self.topology.cycle(workers))]
        return 1 / max(weights[member][member] for weights in rounds for member in members)

    def with_interval(self, updates: int) -> Strategy:
        """Return the strategy with this number of updates between two exchanges, unless the user gave another."""
        return replace(self, period=updates) if self.period == "auto" else self

    def roles(self, config: RunConfig) -> Roles:
        """Return functions that make the roles of a coordinator and the workers."""
        self.topology.check(config.workers)
        compression = compressions.named(self.compression)
        plan = MixingPlan(self.topology)

        def works(number: int) -> Role:
            if self.synchronous:
                return SynchronousWorker(
                    number, config, self.interval, AverageExchange(number, config, plan, compression)
                )
            return ADPSGDWorker(number, config, plan, self.interval, compression)

        return peer_roles(config, self.synchronous, partial(Membership, self._about), works)

    def _about(self, members: tuple[str, ...]) -> dict[str, Any]:
        return about(self.topology, tuple(number_of(name) for name in members))
