"""Strategies whose workers share the parameters in memory: serial, lock-free, locked, in turns, and averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from hogwild.errors import ParameterError
from hogwild.keywords import advised
from hogwild.machine import MOST_WORKERS
from hogwild.registry import invalid_parameter, is_count
from hogwild.strategies.strategy import Access, Strategy, check_workers

if TYPE_CHECKING:
    from hogwild.messaging.job import RunConfig
    from hogwild.messaging.node import Roles


@dataclass(frozen=True, slots=True)
class Serial(Strategy):
    """Serial SGD: one worker processes one term after the other. The same seed gives the same bits."""

    workers = 1

    shares_memory = True


@advised(workers="Write hogwild.Hogwild(workers=4).")
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
        Most rows between two merges of a replica. 0 is the algorithm of the paper. "auto" uses replicas where
        measurements have shown a gain. That needs 1,000 rows for each worker, 8 non-zeros for each coordinate of each
        replica, and 256 MiB of free memory.

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
        check_workers(self.workers, MOST_WORKERS)
        if self.buffer != "auto" and not (
            is_count(self.buffer) or (type(self.buffer) is not bool and self.buffer == 0)
        ):
            raise invalid_parameter("buffer", "a number of rows, or 'auto'", self.buffer)


@advised(workers="Write hogwild.Locked(workers=4).")
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
        check_workers(self.workers, MOST_WORKERS)


@advised(workers="Write hogwild.RoundRobin(workers=4).")
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
        check_workers(self.workers, MOST_WORKERS)


@advised(workers="Write hogwild.Averaging(workers=4).")
@dataclass(frozen=True, slots=True)
class Averaging(Strategy):
    """Parameter averaging (Zinkevich et al. 2010).

    Each worker trains on its own parameters, and an epoch ends with the average of all. Between two averages no worker
    accesses the memory of another. Each epoch partitions the data anew. In a run by messages the parameters are
    averaged only once, at the end of the run. On a GPU, workers are parts of the rows, which meet after each launch: an
    epoch, or about a million rows of it.

    Parameters
    ----------
    workers : int, optional
        Number of workers. Left out, there is one worker per core, and on a GPU there are four.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    Zinkevich, Weimer, Smola and Li 2010, Parallelized Stochastic Gradient Descent.
    """

    workers: int | None = None

    replicas = True

    shares_memory = True
    passes_messages = True

    def __post_init__(self) -> None:
        check_workers(self.workers)

    def roles(self, config: RunConfig) -> Roles:
        """Return functions that make the roles of a coordinator, one server and the workers.

        Raises
        ------
        ParameterError
            If the run has no number of epochs: workers are averaged once, at its end.
        """
        if config.goal is None:
            raise ParameterError(
                "Workers that are averaged once, at the end, need a number of epochs: give budget=Budget(epochs=...), "
                "or use LocalSGD()."
            )
        from hogwild.strategies.roles import synchronous_server_roles

        return synchronous_server_roles(config, config.quota)
