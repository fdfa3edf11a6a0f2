"""What a run leaves behind: parameters, history, events, timings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Protocol

from hogwild.registry import invalid_parameter

Event = dict[str, Any]
"""Something that happened: ``{"event": "epoch", ...}``, plain values only."""

PASSING = ("progress", "cluster")  # events that tell how things stand at a moment: they are told, but not kept

AFFORDABLE = 2**27  # non-zeros and features that nobody minds waiting for: about a second


MONITORED = ("objective", "loss", "training_objective", "score")


class Callback(Protocol):
    """Anything that wants to hear of events as they happen."""

    def __call__(self, event: Event) -> None: ...


@dataclass(frozen=True, slots=True)
class Budget:
    """When to stop: whichever limit is reached first.

    Parameters
    ----------
    epochs : int, optional
        Number of epochs. Without ``epochs`` and ``seconds`` the size of the data decides: 1,000 for very small data,
        10 for large data.
    seconds : float, optional
        Seconds of training.
    target : float, optional
        A loss: of the held-out data if there is any, else of the training data.
    patience : int, optional
        Epochs without a better held-out loss; the run then returns its best parameters.
    tolerance : float, optional
        How much the monitored value must improve on its best within ``stall_epochs``.
    stall_epochs : int, default 5
        Epochs without such an improvement after which the run stops.
    monitor : {"objective", "loss", "training_objective", "score"}, default "objective"
        The value that ``tolerance`` is about. "training_objective" is the objective summed up during the epoch, by a
        rule that tracks it; "score" is the accuracy or R^2 of held-out data.

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
        """The same budget, with so many epochs if nothing else limits them.

        >>> Budget().usually(30).epochs, Budget(epochs=5).usually(30).epochs
        (30, 5)
        """
        return self if self.epochs is not None or self.seconds is not None else replace(self, epochs=epochs)

    def for_data(self, work: int) -> Budget:
        """The same budget; if nothing else limits its epochs, they are chosen by the work of one.

        That is the number of values an epoch passes over: the non-zeros of the data, and the features, since what is
        done once an epoch visits each of those.
        """
        if self.epochs is not None or self.seconds is not None:
            return self
        return replace(self, epochs=max(10, min(1_000, round(AFFORDABLE / max(1, work)))))


def _is_number(value: Any, numbers: type) -> bool:
    return isinstance(value, numbers) and not isinstance(value, bool)


def budget_of(budget: Budget | int | None) -> Budget:
    """A budget from a number of epochs, or from itself."""
    return budget if isinstance(budget, Budget) else Budget(epochs=budget)


@dataclass(frozen=True, slots=True, eq=False)
class WarmStart:
    """Parameters to start from: the ``state`` of another run, or values alone, after so many ``updates``."""

    state: tuple[Any, ...]
    updates: int = 0


@dataclass(frozen=True, eq=False)
class Run:
    """A run that has ended.

    ``history`` has one record per epoch; ``events`` has everything that happened; ``model`` predicts and can be saved.
    A run whose workers sent each other messages sums up its ``staleness``, its ``traffic`` and its ``idle`` time.
    """

    model: Any
    config: Mapping[str, Any] = field(repr=False)  # problem, rule, schedule, strategy, seed, as they were used
    history: list[Event] = field(repr=False)
    events: list[Event] = field(repr=False)
    stop_reason: str  # why it ended: "epochs", "seconds", "target", "patience", "tolerance" or "interrupted"
    state: tuple[Any, ...] = field(repr=False)  # all parameters with what the rule remembers, to start another run from
    seconds: float  # training alone
    compile_seconds: float
    trace: Any = field(default=None, repr=False)  # what took how long, where a runtime recorded it

    @property
    def loss(self) -> float:
        """The mean loss over the training data."""
        return float(self.result["loss"])

    @property
    def objective(self) -> float:
        """The mean loss and the penalty: what was minimised."""
        return float(self.result["objective"])

    @property
    def result(self) -> Event:
        """The record of the parameters that were kept: the best with patience, else the last."""
        return next(event for event in reversed(self.events) if event["event"] == "result")

    @property
    def staleness(self) -> Event | None:
        """How old what workers trained on was: how many changes by others landed between a read and its change.

        ``mean``, ``median``, ``p95``, ``most`` and a ``histogram`` in all; ``workers`` has the figures of each, and
        ``shards`` those that each server, or each worker that is sent changes, has seen. None for workers in one
        memory.
        """
        return self._last("staleness")

    @property
    def traffic(self) -> Event | None:
        """How many ``messages`` and ``bytes`` were sent, what was ``lost`` and ``resent``, and the ``kinds`` of it.

        None for workers in one memory.
        """
        return self._last("traffic")

    @property
    def idle(self) -> Event | None:
        """For how much of their time workers did not train: the ``idle_share``, and ``workers`` one by one.

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
        """Write the model to a file."""
        self.model.save(path)
