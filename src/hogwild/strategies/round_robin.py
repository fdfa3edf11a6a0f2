"""Take turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hogwild.strategies.strategy import Access, Strategy, check_workers


@dataclass(frozen=True, slots=True)
class RoundRobin(Strategy):
    """Workers compute at the same time and take turns to apply what they computed (Langford et al. 2009).

    A gradient is as stale as there are other workers, never more.
    """

    workers: int | None = None

    access: ClassVar[Access] = "turns"

    shares_memory = True

    def __post_init__(self) -> None:
        check_workers(self.workers)
