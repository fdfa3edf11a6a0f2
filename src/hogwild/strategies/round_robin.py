"""Round-robin strategy: workers apply their updates in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hogwild.strategies.strategy import Access, Strategy, check_workers


@dataclass(frozen=True, slots=True)
class RoundRobin(Strategy):
    """Round-robin updates (Langford et al. 2009): workers compute in parallel, and apply their gradients in turn.

    The staleness of a gradient is at most the number of other workers.

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
    Langford, Smola and Zinkevich 2009, Slow Learners are Fast.
    """

    workers: int | None = None

    access: ClassVar[Access] = "turns"

    shares_memory = True

    def __post_init__(self) -> None:
        check_workers(self.workers)
