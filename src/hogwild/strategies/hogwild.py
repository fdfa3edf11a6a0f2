"""Lock-free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hogwild.strategies.sharing import Access, check_workers


@dataclass(frozen=True, slots=True)
class Hogwild:
    """Hogwild! (Niu et al. 2011): every worker reads, computes and writes the shared parameters, with no lock at all.

    When terms are sparse, two workers seldom touch the same coordinate at the same time, and little is lost when they
    do. The intercept, which is in every term, is stepped in a copy per worker and merged every few terms.
    """

    workers: int | None = None

    access: ClassVar[Access] = "free"
    replicas = False

    def __post_init__(self) -> None:
        check_workers(self.workers)
