"""Locked strategy: a worker locks all coordinates of a term."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hogwild.strategies.strategy import Access, Strategy, check_workers


@dataclass(frozen=True, slots=True)
class Locked(Strategy):
    """Locked updates (AIG in Niu et al. 2011): no update is lost.

    A worker locks every coordinate of a term while it reads and writes that term.

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
    Niu, Recht, Re and Wright 2011, Hogwild!: A Lock-Free Approach to Parallelizing Stochastic Gradient Descent.
    """

    workers: int | None = None

    access: ClassVar[Access] = "locked"

    shares_memory = True

    def __post_init__(self) -> None:
        check_workers(self.workers)
