"""Averaging strategy: workers train independently, and their parameters are averaged."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.messaging.run_config import RunConfig
from hogwild.strategies.message_passing import synchronous_server_roles
from hogwild.strategies.strategy import Roles, Strategy, check_workers


@dataclass(frozen=True, slots=True)
class Averaging(Strategy):
    """Parameter averaging (Zinkevich et al. 2010).

    Each worker trains on its own parameters, and an epoch ends with the average of all. Between two averages no worker
    accesses the memory of another. Each epoch partitions the data anew. In a run by messages the parameters are
    averaged only once, at the end of the run.

    Parameters
    ----------
    workers : int, optional
        Number of workers. Left out, there is one worker per core.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Zinkevich, Weimer, Smola and Li 2010, Parallelized Stochastic Gradient Descent.
    """

    workers: int | None = None

    replicas = True

    shares_memory = True
    passes_messages = True

    def __post_init__(self) -> None:
        check_workers(self.workers)

    def roles(self, config: RunConfig) -> Roles:
        """Return functions that make the roles of a coordinator, one server and the workers."""
        return synchronous_server_roles(config, config.quota)
