"""Train apart, then average."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.messaging.run_config import RunConfig
from hogwild.strategies.message_passing import synchronous_server_roles
from hogwild.strategies.strategy import Roles, Strategy, check_workers


@dataclass(frozen=True, slots=True)
class Averaging(Strategy):
    """Each worker descends on parameters of its own; every epoch ends in their average (Zinkevich et al. 2010).

    Workers never touch each other's memory in between. Each epoch deals the data out anew. Where workers send each
    other messages, they meet only once, at the end of the run.
    """

    workers: int | None = None

    replicas = True

    shares_memory = True
    passes_messages = True

    def __post_init__(self) -> None:
        check_workers(self.workers)

    def roles(self, config: RunConfig) -> Roles:
        """The role of each node, where workers send each other messages."""
        return synchronous_server_roles(config, config.quota)
