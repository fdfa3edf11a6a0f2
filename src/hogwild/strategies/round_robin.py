"""Take turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hogwild.strategies.shared_memory import Access, check_workers


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """Workers compute at the same time and take turns to apply what they computed (Langford et al. 2009).

    A gradient is as stale as there are other workers, never more.
    """

    workers: int | None = None

    access: ClassVar[Access] = "turns"
    replicas = False

    def __post_init__(self) -> None:
        check_workers(self.workers)
