"""Contract of strategies: the protocols by which workers share the parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from hogwild.errors import ParameterError
from hogwild.machine import MOST_SIMULATED_WORKERS, usable_cores
from hogwild.registry import invalid_parameter, is_count

if TYPE_CHECKING:
    from hogwild.messaging.compiled_job import PlainServer
    from hogwild.messaging.job import RunConfig
    from hogwild.messaging.node import Roles
    from hogwild.strategies.synchronous import LargeMinibatch

Access = Literal["free", "locked", "turns"]
"""Method by which workers in shared memory avoid conflicts: none, locks on coordinates, or a fixed order of turns."""

Interval = int | Literal["auto"]
"""Number of updates of a worker between two exchanges; with "auto" the run chooses it."""


class Strategy:
    """Protocol by which workers share the parameters, in shared memory or by messages.

    A strategy derives from this class and sets ``shares_memory``, ``passes_messages`` or both. All other attributes
    have defaults. Strategies are frozen data classes, and their options, such as ``workers``, are fields.
    """

    __slots__ = ()

    shares_memory: ClassVar[bool] = False
    passes_messages: ClassVar[bool] = False
    uses_all_reduce: ClassVar[bool] = False  # Whether processes exchange gradients at each step.

    @property
    def workers(self) -> int | None:
        """The number of workers; None for one worker per core."""
        return None

    # Properties of strategies in shared memory.

    @property
    def access(self) -> Access:
        """The method by which workers in shared memory avoid conflicts."""
        return "free"

    @property
    def replicas(self) -> bool:
        """Whether each worker has its own parameters, which are averaged when workers meet."""
        return False

    @property
    def buffer(self) -> int | str:
        """The number of rows between two merges of a worker's replica of the hot coordinates.

        0 disables replicas. "auto" enables them where measurements have shown a gain.
        """
        return 0

    @property
    def loses_nothing(self) -> bool:
        """Whether there is one worker, or workers may have replicas, whose merges lose no change."""
        alone = self.workers == 1 or self.buffer == "auto"
        return self.shares_memory and alone and self.access == "free" and not self.replicas

    # Properties of strategies by messages.

    @property
    def within(self) -> Strategy | str | None:
        """The shared-memory strategy that each node uses on its own cores; None for one worker per node."""
        return None

    textbook_interval: ClassVar[int] = 1  # Updates between two exchanges in the paper that the strategy is from.

    @property
    def period(self) -> Interval:
        """The number of updates of a worker between two exchanges; "auto" leaves it to the run."""
        return 1

    # Whether parameters move by the sum or the mean of the workers' changes and by nothing else, so that changes can be
    # weighed by the number of workers that change the same coordinate.
    weighs_changes: ClassVar[bool] = False

    def neighbourhood(self, workers: int) -> float:
        """Return the number of workers among which an exchange spreads the change of one, itself included."""
        return workers

    @property
    def servers(self) -> int:
        """The number of servers among which the parameters are divided, at least 1."""
        return 1

    @property
    def exchanges_changes(self) -> bool:
        """Whether workers can keep their parameters, and pull only what others have changed."""
        return False

    @property
    def in_rounds(self) -> Strategy | None:
        """The strategy with exchanges in rounds, which all workers take part in; None where none is like it."""
        return None

    @property
    def interval(self) -> int:
        """The number of updates of a worker between two exchanges: that of the textbook where the run chose none."""
        return self.textbook_interval if self.period == "auto" else self.period

    def with_interval(self, updates: int) -> Strategy:
        """Return the strategy with this number of updates between two exchanges, unless the user gave another."""
        return self

    @property
    def run_ahead(self) -> int | None:
        """The most pushes of a worker while a pull is on its way; None leaves it to the runtime."""
        return 0

    @property
    def bounded(self) -> bool:
        """Whether workers wait for each other."""
        return True

    @property
    def combine(self) -> str | None:
        """The combination of deltas of several workers, "mean" or "sum"; None if the strategy has no such option."""
        return None

    @property
    def mixes(self) -> bool:
        """Whether workers mix parameters, instead of adding deltas to them."""
        return False

    def roles(self, config: RunConfig) -> Roles:
        """Return a function for each node that makes its role, for runs by messages.

        Parameters
        ----------
        config : RunConfig
            Configuration of the run.

        Returns
        -------
        mapping of str to callable
            Function that makes the role of a node, by name of the node.

        Raises
        ------
        ParameterError
            If the strategy is for shared memory only.
        """
        raise ParameterError(
            f"The strategy {self!r} has its workers in one memory: use runtime=Threads(), or a strategy by messages "
            "such as ParameterServer()."
        )

    def plain_server(self, config: RunConfig) -> PlainServer | None:
        """Return the strategy as a plain parameter server, which simulators have compiled; None if it is not one."""
        return None

    # Properties of strategies for large minibatches.

    @property
    def recipe(self) -> LargeMinibatch | None:
        """The changes of step size and weight decay for large minibatches; None for no changes."""
        return None

    @property
    def averages(self) -> bool:
        """Whether the parameters move by the mean of the workers' changes, instead of by each change in full."""
        if self.combine is not None:
            return self.combine == "mean"
        return self.replicas or self.mixes or (self.passes_messages and self.bounded)

    def total(self, batch: int, workers: int | None = None) -> int:
        """Return the number of samples in one step: those whose changes are averaged.

        Parameters
        ----------
        batch : int
            Samples in the batch of one worker.
        workers : int, optional
            Number of workers. Left out, it is that of the strategy, or 1.

        Returns
        -------
        int
            ``workers * batch`` if the strategy averages the changes of its workers, else ``batch``.
        """
        return (workers or self.workers or 1) * batch if self.averages else batch


def check_workers(workers: int | None, most: int = MOST_SIMULATED_WORKERS) -> None:
    """Raise :class:`ParameterError` unless ``workers`` is None or a positive integer up to ``most``."""
    if workers is not None and not is_count(workers):
        raise invalid_parameter("workers", "a positive integer, or None for one per core", workers)
    if workers is not None and workers > most:
        raise invalid_parameter("workers", f"at most {most:,}", workers)


def check_count(name: str, value: int) -> None:
    """Raise :class:`ParameterError` unless ``value`` is a positive integer."""
    if not is_count(value):
        raise invalid_parameter(name, "a positive integer", value)


def check_interval(name: str, value: Interval) -> None:
    """Raise :class:`ParameterError` unless ``value`` is a positive integer or "auto"."""
    if value != "auto" and not is_count(value):
        raise invalid_parameter(name, "a positive integer, or 'auto'", value)


def check_run_ahead(value: int | None) -> None:
    """Raise :class:`ParameterError` unless ``run_ahead`` is a number of at least 0, or None."""
    if value is not None and not (is_count(value) or (type(value) is not bool and value == 0)):
        raise invalid_parameter("run_ahead", "a whole number of at least 0, or None", value)


def worker_count(strategy: Strategy) -> int:
    """Return the number of workers that a strategy has on this machine.

    >>> from hogwild.strategies import Hogwild, Serial
    >>> worker_count(Hogwild(workers=3)), worker_count(Serial())
    (3, 1)
    """
    return strategy.workers or usable_cores()
