"""Hogwild! strategy: workers update shared parameters without locks."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.registry import invalid_parameter
from hogwild.strategies.strategy import Strategy, check_workers


@dataclass(frozen=True, slots=True)
class Hogwild(Strategy):
    """Hogwild! (Niu et al. 2011): every worker reads, computes and writes the shared parameters without locks.

    When terms are sparse, two workers seldom write to the same coordinate at the same time. Such a conflict loses only
    one update of the coordinate. The intercept is in every term. So each worker updates its own copy of the intercept,
    and merges it every 16 terms (decision 3).

    On many cores, every write to a hot coordinate would move its cache line from core to core. With a ``buffer``, each
    worker updates its own replica of the hot coordinates, and merges it with the shared parameters (decision 6).
    Replicas need the rule SGD or AdaGrad and a model with one output. Other rules and models train without replicas.

    Parameters
    ----------
    workers : int, optional
        Number of workers. Left out, there is one worker per core.
    buffer : int or "auto", default "auto"
        Rows between two merges of a replica. 0 is the algorithm of the paper. "auto" uses replicas where measurements
        have shown a gain. That needs 1,000 rows for each worker, 8 non-zeros for each coordinate of each replica, and
        256 MiB of free memory.

    Raises
    ------
    ParameterError
        If ``workers`` or ``buffer`` is out of its range.

    References
    ----------
    Niu, Recht, Re and Wright 2011, Hogwild!: A Lock-Free Approach to Parallelizing Stochastic Gradient Descent.
    """

    workers: int | None = None
    buffer: int | str = "auto"

    shares_memory = True

    def __post_init__(self) -> None:
        check_workers(self.workers)
        number = isinstance(self.buffer, int) and not isinstance(self.buffer, bool) and self.buffer >= 0
        if not number and self.buffer != "auto":
            raise invalid_parameter("buffer", "a number of rows, or 'auto'", self.buffer)
