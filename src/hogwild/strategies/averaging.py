"""Train apart, then average."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hogwild.strategies.sharing import Access, check_workers


@dataclass(frozen=True, slots=True)
class Averaging:
    """Each worker descends on parameters of its own; every epoch ends in their average (Zinkevich et al. 2010).

    Workers never touch each other's memory in between. Each epoch deals the data out anew.
    """

    workers: int | None = None

    access: ClassVar[Access] = "free"
    replicas = True

    def __post_init__(self) -> None:
        check_workers(self.workers)
