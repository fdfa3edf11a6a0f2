"""No servers: workers mix their parameters with those of their neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from hogwild import topologies
from hogwild.errors import ParameterError
from hogwild.messaging import compression as compressions
from hogwild.messaging.compression import Half
from hogwild.messaging.messages import number_of
from hogwild.messaging.node import Role
from hogwild.messaging.run_config import RunConfig
from hogwild.strategies.message_passing import peer_roles
from hogwild.strategies.roles.adpsgd_worker import ADPSGDWorker
from hogwild.strategies.roles.membership import Membership
from hogwild.strategies.roles.mixing import AverageExchange, MixingPlan
from hogwild.strategies.roles.synchronous_worker import SynchronousWorker
from hogwild.strategies.strategy import Roles, Strategy, check_count, check_workers
from hogwild.topologies.mixing_matrix import about


@dataclass(frozen=True, slots=True)
class Gossip(Strategy):
    """Decentralised SGD: each worker has parameters of its own and talks to its neighbours only.

    ``topology`` is who they are: "ring", "clique", "star", "grid", "torus", "hypercube", "exponential",
    "one-peer-exponential", "random-regular:4", or a graph of networkx. When ``synchronous``, everybody trains
    ``period`` updates, sends its parameters to its neighbours, waits for theirs and mixes them (D-PSGD, Lian et al.
    2017, arXiv 1705.09056), with weights of Metropolis and Hastings; in directed graphs by push-sum. Else it meets one
    neighbour at random half way after each ``period``, and nobody waits (AD-PSGD). The result is the mean of all;
    ``consensus`` in each epoch's record is how far apart they are. Workers that come and go change the topology.

    ``compression`` is None or "half". ``within`` is what each node does on its own cores.

    >>> Gossip("torus", workers=12).bounded
    True
    """

    topology: Any = "ring"
    synchronous: bool = True
    workers: int | None = None
    period: int = 1
    compression: Any = None
    within: Strategy | str | None = None

    mixes: ClassVar[bool] = True  # parameters, instead of adding changes to them

    passes_messages = True

    def __post_init__(self) -> None:
        check_workers(self.workers)
        check_count("period", self.period)
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
        """Whether workers wait for others."""
        return self.synchronous

    def roles(self, config: RunConfig) -> Roles:
        """A coordinator, and workers."""
        self.topology.check(config.workers)
        compression = compressions.named(self.compression)
        plan = MixingPlan(self.topology)

        def works(number: int) -> Role:
            if self.synchronous:
                return SynchronousWorker(
                    number, config, self.period, AverageExchange(number, config, plan, compression)
                )
            return ADPSGDWorker(number, config, plan, self.period, compression)

        return peer_roles(config, self.synchronous, partial(Membership, self._about), works)

    def _about(self, members: tuple[str, ...]) -> dict[str, Any]:
        return about(self.topology, tuple(number_of(name) for name in members))
