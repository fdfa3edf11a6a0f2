"""Budget, events and result of a run, and the averages of iterates that it can return."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Protocol

from hogwild.registry import invalid_parameter

Event = dict[str, Any]
"""Event of a run, such as ``{"event": "epoch", ...}``; its values are of types that JSON has."""

# Events about the present state of a run: callbacks receive them, but ``Run.events`` does not keep them.
PASSING = ("progress", "cluster")

# Values (non-zeros and features) that a default budget passes over in a run: about one second of training.
AFFORDABLE = 2**27


MONITORED = ("objective", "loss", "training_objective", "score")


class Callback(Protocol):
    """Callable that receives each event of a run when it happens."""

    def __call__(self, event: Event) -> None: ...


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a run; the run stops at the limit that it reaches first.

    Parameters
    ----------
    epochs : int, optional
        Number of epochs. Without ``epochs`` and ``seconds`` the size of the data decides: 1,000 for very small data, 10
        for large data.
    seconds : float, optional
        Seconds of training.
    target : float, optional
        Loss at which the run stops: of the held-out data if there is any, else of the training data.
    patience : int, optional
        Epochs without a lower held-out loss after which the run stops. The run then returns its best parameters.
    tolerance : float, optional
        Least improvement of the monitored value on its best within ``stall_epochs``.
    stall_epochs : int, default 5
        Consecutive epochs without an improvement by ``tolerance`` after which the run stops.
    monitor : {"objective", "loss", "training_objective", "score"}, default "objective"
        Value that ``tolerance`` applies to. "training_objective" is the objective summed over the updates of an epoch,
        by a rule that tracks it. "score" is the accuracy or R^2 of the held-out data.

    Raises
    ------
    ParameterError
        If a limit is not a positive number, or ``monitor`` is unknown.

    Examples
    --------
    >>> Budget().for_data(work=340_000).epochs, Budget(seconds=60).for_data(10).epochs is None
    (395, True)
    """

    epochs: int | None = None
    seconds: float | None = None
    target: float | None = None
    patience: int | None = None
    tolerance: float | None = None
    stall_epochs: int = 5
    monitor: str = "objective"

    def __post_init__(self) -> None:
        for name, kind, numbers in (
            ("epochs", "a positive integer", Integral),
            ("seconds", "a positive number", Real),
            ("patience", "a positive integer", Integral),
            ("stall_epochs", "a positive integer", Integral),
        ):
            value = getattr(self, name)
            if value is not None and not (_is_number(value, numbers) and value > 0):
                raise invalid_parameter(name, kind, value)
        if self.monitor not in MONITORED:
            raise invalid_parameter("monitor", f"one of {', '.join(MONITORED)}", self.monitor)
        for name in ("target", "tolerance"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value, Real) and not math.isnan(value)):
                raise invalid_parameter(name, "a number", value)

    def usually(self, epochs: int | None) -> Budget:
        """Return this budget with a default number of epochs, if neither epochs nor seconds limit it.

        Parameters
        ----------
        epochs : int or None
            Default number of epochs.

        Returns
        -------
        Budget
            This budget, or a copy with ``epochs``.

        Examples
        --------
        >>> Budget().usually(30).epochs, Budget(epochs=5).usually(30).epochs
        (30, 5)
        """
        return self if self.epochs is not None or self.seconds is not None else replace(self, epochs=epochs)

    def for_data(self, work: int) -> Budget:
        """Return this budget with a number of epochs that suits the data, if neither epochs nor seconds limit it.

        Parameters
        ----------
        work : int
            Number of values that an epoch passes over: the non-zeros of the data and the features. The features count
            because the work done once an epoch visits each of them.

        Returns
        -------
        Budget
            This budget, or a copy with 2**27 / ``work`` epochs, at least 10 and at most 1,000.
        """
        if self.epochs is not None or self.seconds is not None:
            return self
        return replace(self, epochs=max(10, min(1_000, round(AFFORDABLE / max(1, work)))))


def _is_number(value: Any, numbers: type) -> bool:
    return isinstance(value, numbers) and not isinstance(value, bool)


def budget_of(budget: Budget | int | None) -> Budget:
    """Return a budget from a number of epochs; a budget is returned as it is."""
    return budget if isinstance(budget, Budget) else Budget(epochs=budget)


@dataclass(frozen=True, slots=True, eq=False)
class WarmStart:
    """Parameters that a run starts from.

    Parameters
    ----------
    state : tuple of arrays
        The ``state`` of another run, or the values of its parameters alone.
    updates : int, default 0
        Number of updates before this run; the schedule continues from there.
    """

    state: tuple[Any, ...]
    updates: int = 0


@dataclass(frozen=True, eq=False)
class Run:
    """Result of a run that has ended.

    A run whose workers exchange messages also summarises its ``staleness``, its ``traffic`` and its ``idle`` time.

    Parameters
    ----------
    model : model
        Model with the parameters that were kept; it predicts and can be saved.
    config : mapping
        Problem, rule, schedule, strategy and seed, as they were used.
    history : list of dict
        One record per epoch.
    events : list of dict
        All events of the run, except those about a passing state ("progress", "cluster").
    stop_reason : {"epochs", "seconds", "target", "patience", "tolerance", "interrupted"}
        Limit that ended the run.
    state : tuple
        All parameters with the state of the rule, for ``WarmStart``.
    seconds : float
        Seconds of training alone.
    compile_seconds : float
        Seconds of compilation and preparation.
    trace : Trace, optional
        Durations of bursts and messages, if the runtime recorded them.
    """

    model: Any
    config: Mapping[str, Any] = field(repr=False)  # Problem, rule, schedule, strategy and seed, as they were used.
    history: list[Event] = field(repr=False)
    events: list[Event] = field(repr=False)
    stop_reason: str  # "epochs", "seconds", "target", "patience", "tolerance" or "interrupted"
    # All parameters with the state of the rule; another run can start from them.
    state: tuple[Any, ...] = field(repr=False)
    seconds: float  # Seconds of training alone.
    compile_seconds: float
    trace: Any = field(default=None, repr=False)  # Durations of bursts and messages, if the runtime recorded them.

    @property
    def loss(self) -> float:
        """The mean loss over the training data."""
        return float(self.result["loss"])

    @property
    def objective(self) -> float:
        """The objective: mean loss and penalty."""
        return float(self.result["objective"])

    @property
    def result(self) -> Event:
        """The record of the parameters that were kept: the best with ``patience``, else the last."""
        return next(event for event in reversed(self.events) if event["event"] == "result")

    @property
    def staleness(self) -> Event | None:
        """The staleness of the updates: the number of updates by others between a worker's read and its write.

        The record has ``mean``, ``median``, ``p95``, ``most`` and a ``histogram`` over all updates. ``workers`` has the
        figures of each worker. ``shards`` has the figures of each server, or of each worker that receives deltas. None
        for workers in one memory.
        """
        return self._last("staleness")

    @property
    def traffic(self) -> Event | None:
        """The number of ``messages`` and ``bytes`` sent, of messages ``lost`` and ``resent``, and these by ``kinds``.

        None for workers in one memory.
        """
        return self._last("traffic")

    @property
    def idle(self) -> Event | None:
        """The ``idle_share`` of the workers' time, in which they did not train, and the same for each of ``workers``.

        None for workers in one memory.
        """
        return self._last("waiting")

    @property
    def conflicts(self) -> Event | None:
        """Staleness, collisions and lost writes of workers in one memory, with ``count_conflicts=True``."""
        return self._last("conflicts")

    def _last(self, kind: str) -> Event | None:
        return next((event for event in reversed(self.events) if event["event"] == kind), None)

    def save(self, path: str | Path) -> None:
        """Write the model to a file.

        Parameters
        ----------
        path : path
            File to write.
        """
        self.model.save(path)


@dataclass(frozen=True, slots=True)
class EMA:
    """Exponential moving average of the iterates, for ``minimise(average=EMA())``.

    Parameters
    ----------
    decay : float, default 0.999
        Weight of each iterate relative to the next one, between 0 and 1.

    Raises
    ------
    ParameterError
        If ``decay`` is not between 0 and 1.

    Examples
    --------
    >>> EMA(1.5)
    Traceback (most recent call last):
        ...
    hogwild.errors.ParameterError: The 'decay' parameter must be between 0 and 1. Got 1.5 instead.
    """

    decay: float = 0.999

    def __post_init__(self) -> None:
        if not 0 < self.decay < 1:
            raise invalid_parameter("decay", "between 0 and 1", self.decay)
