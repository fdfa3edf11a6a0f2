"""Lock everything a term touches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hogwild.strategies.strategy import Access, Strategy, check_workers


@dataclass(frozen=True, slots=True)
class Locked(Strategy):
    """Every coordinate of a term is locked while it is read and written (AIG in Niu et al. 2011): no update is lost."""

    workers: int | None = None

    access: ClassVar[Access] = "locked"

    shares_memory = True

    def __post_init__(self) -> None:
        check_workers(self.workers)
