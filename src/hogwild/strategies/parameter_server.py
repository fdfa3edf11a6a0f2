"""Parameter-server strategy: servers hold the parameters, and workers pull them, train, and push deltas."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from hogwild import delays
from hogwild.delays import Always, Delay
from hogwild.errors import ParameterError
from hogwild.messaging import compression as compressions
from hogwild.messaging.compiled_job import PlainServer
from hogwild.messaging.job import RunConfig
from hogwild.messaging.node import Role, Roles
from hogwild.registry import invalid_parameter
from hogwild.strategies import delay_correction
from hogwild.strategies.delay_correction import Correction
from hogwild.strategies.roles import change_log, parts_of, server_roles
from hogwild.strategies.roles.controlled_staleness import ControlledStaleness
from hogwild.strategies.roles.parameter_server import ParameterServerRole
from hogwild.strategies.roles.parameter_server_worker import ParameterServerWorker
from hogwild.strategies.roles.resident_worker import ResidentWorker
from hogwild.strategies.strategy import (
    Interval,
    Strategy,
    check_count,
    check_interval,
    check_run_ahead,
    check_workers,
)

COMBINATIONS = ("mean", "sum")


@dataclass(frozen=True, slots=True)
class ParameterServer(Strategy):
    """Asynchronous SGD with parameter servers (Downpour, Dean et al. 2012; bounded staleness, Ho et al. 2013).

    A worker pushes its delta after every ``push_every`` updates, and pulls parameters after every ``pull_every``
    updates. While a pull is on its way the worker goes on with the parameters that it has. Without a bound on staleness
    no worker waits for another. No worker ever waits for a crashed worker.

    Parameters
    ----------
    workers : int, optional
        Number of workers. Left out, there is one worker per core.
    shards : int, default 1
        Number of servers, each of which holds a part of the parameters.
    staleness : int, str or Delay, optional
        Bound s on staleness, in pushes: a worker that has pushed k times continues when every worker has pushed k - s
        times. With 0 all workers train in lockstep. Left out, there is no bound, except with Adam and momentum where
        the run chooses ``push_every``: their means are exchanged in lockstep. For controlled studies, "fixed:20"
        makes every delta 20 pushes stale, and a distribution of :mod:`hogwild.delays` or its name with numbers, such as
        "exponential:20", draws the staleness of each. The servers then add deltas in a fixed order and answer pulls
        with old parameters. The first deltas are less stale, and after a crash of a server a few are more or less so.
    push_every : int or "auto", default "auto"
        Updates of a worker between two pushes. With "auto" the run measures what an exchange and an update cost, and
        chooses an interval at which exchanges take little time. The textbook has 1, as runs of a Module
        and simulated runs do.
    pull_every : int, optional
        Updates between two pulls, a multiple of ``push_every``. Left out, it is ``push_every``.
    run_ahead : int, optional
        Most pushes of a worker while a pull is on its way; then it waits for the parameters. With 0 it waits for every
        pull, and the latency of the network costs time instead of staleness. Left out, it is 1,024 in a simulated
        network, where latency becomes staleness, and 1 in a real one, where a server that cannot keep up would
        otherwise be sent ever older deltas. Between threads it is 0 if rare features are exchanged less often.
    combine : {"mean", "sum"}, optional
        Whether servers add the mean of the deltas, or each delta in full. Left out, it is the sum without a bound, and
        the mean with one.
    correction : Correction or str, optional
        Correction of stale deltas: :class:`DelayAdaptive` or :class:`DelayCompensation`.
    compression : str or Compression, optional
        Compression of deltas: "half", "top-k:0.01" or an object. Left out, deltas are sent in full.
    within : Strategy or str, optional
        Shared-memory strategy that each node uses on its own cores. Left out, a node trains on one core.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, ``pull_every`` is no multiple of ``push_every``, pulls are too rare for the
        bound, or ``run_ahead`` or several servers are combined with a bounded or controlled staleness.

    Examples
    --------
    >>> ParameterServer(workers=4, staleness=2, push_every=8).bounded
    True

    References
    ----------
    Dean et al. 2012, Large Scale Distributed Deep Networks; Ho et al. 2013, More Effective Distributed ML via a Stale
    Synchronous Parallel Parameter Server.
    """

    workers: int | None = None
    shards: int = 1
    staleness: int | str | Delay | None = None
    push_every: Interval = "auto"
    pull_every: int | None = None
    run_ahead: int | None = None
    combine: str | None = None
    correction: Correction | str | None = None
    compression: Any = None
    within: Strategy | str | None = None

    passes_messages = True
    weighs_changes = True

    def __post_init__(self) -> None:
        check_workers(self.workers)
        delay_correction.named(self.correction)
        check_count("shards", self.shards)
        check_interval("push_every", self.push_every)
        self._check_staleness()
        if self.combine not in (None, *COMBINATIONS):
            raise invalid_parameter("combine", "'mean', 'sum' or None", self.combine)
        if self.pull_every is not None:
            check_count("pull_every", self.pull_every)
            if self.pull_every % self.interval:
                raise ParameterError(
                    "'pull_every' must be a multiple of 'push_every': parameters are pulled after a push. "
                    f"Got {self.pull_every} and {self.push_every}."
                )
        bound = self.bound
        if bound is not None and self.pushes_a_pull - 1 > bound:
            raise ParameterError(
                f"With a pull after {self.pushes_a_pull} pushes, parameters are older than staleness={self.staleness} "
                "allows: pull more often, or allow more."
            )
        compressions.named(self.compression)

    def _check_staleness(self) -> None:
        if isinstance(self.staleness, bool | float) or (self.bound is not None and self.bound < 0):
            raise invalid_parameter(
                "staleness", "a number of pushes, a distribution such as 'fixed:20', or None", self.staleness
            )
        if isinstance(self.controlled, Always) and not float(self.controlled.seconds).is_integer():
            raise invalid_parameter("staleness", "a whole number of pushes, such as 'fixed:20'", self.staleness)
        check_run_ahead(self.run_ahead)
        if self.staleness is not None and self.run_ahead:
            raise ParameterError(
                "With a 'staleness' a worker waits for the parameters that it pulls: leave out 'run_ahead'."
            )
        if self.controlled is not None and (self.shards > 1 or self.pushes_a_pull > 1):
            raise ParameterError(
                f"With the staleness {self.staleness!r} one server numbers all updates, and each needs a pull of its "
                "own: leave out 'shards' and 'pull_every'."
            )

    @property
    def bound(self) -> int | None:
        """The bound on staleness in pushes; None if there is none."""
        return self.staleness if isinstance(self.staleness, int) else None

    @property
    def controlled(self) -> Delay | None:
        """The distribution of the staleness where it is prescribed; None where it is not."""
        if self.staleness is None or isinstance(self.staleness, int):
            return None
        text = self.staleness
        try:
            return delays.named(text.removeprefix("fixed:") if isinstance(text, str) else text)
        except ParameterError:
            raise invalid_parameter(
                "staleness", "a number of pushes, 'fixed:20', or a distribution such as 'exponential:20'", text
            ) from None

    @property
    def bounded(self) -> bool:
        """Whether workers wait for each other."""
        return self.bound is not None

    @property
    def pushes_a_pull(self) -> int:
        """The number of pushes between two pulls."""
        return (self.pull_every or self.interval) // self.interval

    @property
    def exchanges_changes(self) -> bool:
        """Whether workers can keep their parameters, and pull only what others have changed."""
        options = self.staleness, self.correction, self.compression, self.combine, self.pull_every
        return all(option is None for option in options)

    @property
    def in_rounds(self) -> Strategy | None:
        """The strategy with workers that wait for each other after every push."""
        return replace(self, staleness=0, run_ahead=None) if self.exchanges_changes else None

    @property
    def period(self) -> Interval:
        """The number of updates between two exchanges; "auto" leaves it to the run."""
        return self.push_every

    @property
    def servers(self) -> int:
        """The number of servers among which the parameters are divided."""
        return self.shards

    def with_interval(self, updates: int) -> Strategy:
        """Return the strategy with this number of updates between two exchanges, unless the user gave another."""
        # A prescribed staleness, and a given interval of pulls, are those of the textbook's pushes.
        free = self.push_every == "auto" and self.pull_every is None and self.controlled is None
        return replace(self, push_every=updates) if free else self

    def plain_server(self, config: RunConfig) -> PlainServer | None:
        """Return the strategy as a plain parameter server; None with several servers or with options that it lacks."""
        plain = (self.shards, self.controlled, self.correction, self.compression) == (1, None, None, None)
        several_rounds = self._bound_at_pull == 0 and self.pushes_a_pull > 1  # A plain server keeps one at a time.
        if not plain or several_rounds or self.within is not None or config.resident:
            return None
        return PlainServer(
            self.interval, self.pushes_a_pull, self._run_ahead(config), self._bound_at_pull, self._takes_mean,
            self.bounded,
        )  # fmt: skip

    @property
    def _bound_at_pull(self) -> int | None:
        # Each push after a pull makes the parameters of the worker one clock older. The bound must hold for the last
        # push.
        return None if self.bound is None else self.bound - (self.pushes_a_pull - 1)

    @property
    def _takes_mean(self) -> bool:
        return (self.combine or ("mean" if self.bounded else "sum")) == "mean"

    def _run_ahead(self, config: RunConfig) -> int:
        return config.run_ahead if self.staleness is None else 0

    def roles(self, config: RunConfig) -> Roles:
        """Return functions that make the roles of a coordinator, the servers and the workers."""
        bound, controlled, mean = self._bound_at_pull, self.controlled, self._takes_mean
        parts, correction = parts_of(config, self.shards), delay_correction.named(self.correction)
        return server_roles(
            config,
            self.shards,
            self.bounded,
            lambda number, start, stop: ParameterServerRole(
                number, start, stop, config, staleness=bound, mean=mean, correction=correction,
                order=None if controlled is None else ControlledStaleness(controlled, config.start, config.seed),
                log=change_log(config, start, stop),
            ),
            partial(self._worker, config, parts),
        )  # fmt: skip

    def _worker(self, config: RunConfig, parts: tuple[tuple[int, int], ...]) -> Role:
        if config.resident:
            return ResidentWorker(config, parts, push_every=self.interval, run_ahead=config.run_ahead)
        return ParameterServerWorker(
            config, parts, push_every=self.interval, pull_every=self.pushes_a_pull, rounds=self.bounded,
            run_ahead=self._run_ahead(config),
            compression=compressions.named(self.compression),
        )  # fmt: skip
