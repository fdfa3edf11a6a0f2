"""Train apart, then average."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hogwild.messaging.run_config import RunConfig
from hogwild.strategies.message_passing import Cast, synchronous_server_roles
from hogwild.strategies.shared_memory import Access, check_workers


@dataclass(frozen=True, slots=True)
class Averaging:
    """Each worker descends on parameters of its own; every epoch ends in their average (Zinkevich et al. 2010).

    Workers never touch each other's memory in between. Each epoch deals the data out anew. Where workers send each
    other messages, they meet only once, at the end of the run.
    """

    workers: int | None = None

    access: ClassVar[Access] = "free"
    replicas = True
    bounded: ClassVar[bool] = True
    within: ClassVar[Any] = None

    def __post_init__(self) -> None:
        check_workers(self.workers)

    def cast(self, setting: RunConfig) -> Cast:
        """Who takes part, where workers send each other messages."""
        return synchronous_server_roles(setting, setting.quota)
