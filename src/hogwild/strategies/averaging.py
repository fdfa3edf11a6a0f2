"""Train apart, then average."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.strategies.sharing import check_workers


@dataclass(frozen=True, slots=True)
class Averaging:
    """Each worker descends on parameters of its own; they are averaged at the end of every epoch (Zinkevich et al. 2010).

    Workers never touch each other's memory in between. Each epoch deals the data out anew.
    """

    workers: int | None = None

    access = "free"
    replicas = True

    def __post_init__(self) -> None:
        check_workers(self.workers)
