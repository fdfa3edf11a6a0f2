"""Learning-rate schedulers of PyTorch as schedules of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from hogwild.errors import ParameterError
from hogwild.registry import invalid_parameter
from hogwild.schedules import Moment, Schedule
from hogwild.schedules.schedule import Rates

TRIED = 100  # steps that are simulated before a run, to see whether the scheduler changes anything but step sizes
EPSILON = 1e-6  # of a step: samples divided by samples may be a little less than a whole number


@dataclass(frozen=True, slots=True)
class TorchSchedule(Schedule):
    """Schedule of a ``Module`` that is a learning-rate scheduler of PyTorch.

    The scheduler steps a stand-in for the optimiser, with the same step sizes, and its steps are counted by the samples
    of all workers together. No worker has a scheduler of its own.

    Parameters
    ----------
    factory : callable
        Function of an optimiser that makes the scheduler, such as ``partial(StepLR, step_size=10)``.
    steps_per_epoch : int, default 1
        Number of steps of the scheduler in an epoch. For schedulers that are stepped after each batch, it is the number
        of batches of an epoch.

    Raises
    ------
    ParameterError
        If the factory is no function of an optimiser.

    Examples
    --------
    >>> halved = TorchSchedule(partial(torch.optim.lr_scheduler.StepLR, step_size=2, gamma=0.5))
    >>> bound = halved.bound(torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1))
    >>> bound(Moment(np.arange(4.0), np.array([0.0, 1.9, 2.0, 4.5]), np.zeros(4))).tolist()
    [0.1, 0.1, 0.05, 0.025]
    """

    factory: Callable[[torch.optim.Optimizer], LRScheduler]
    steps_per_epoch: int = 1
    # Options of each parameter group of the optimiser; None before the schedule is bound to one.
    groups: tuple[dict[str, Any], ...] | None = field(default=None, repr=False)
    _table: list[float] = field(default_factory=list, repr=False, compare=False)  # step size after each step so far

    def __post_init__(self) -> None:
        if not callable(self.factory):
            raise invalid_parameter("factory", "a function of an optimiser that makes a scheduler", self.factory)
        steps: Any = self.steps_per_epoch
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
            raise invalid_parameter("steps_per_epoch", "a positive integer", steps)

    def bound(self, optimiser: torch.optim.Optimizer) -> TorchSchedule:
        """Return the schedule for the step sizes of an optimiser.

        Raises
        ------
        ParameterError
            If the scheduler cannot be made, or changes more than one common factor of the step sizes.
        """
        groups = tuple(
            {name: value for name, value in group.items() if name != "params"} for group in optimiser.param_groups
        )
        found = replace(self, groups=groups, _table=[])
        found._simulate(TRIED)
        return found

    def __call__(self, moment: Moment) -> Rates:
        """Return the step sizes of the first parameter group."""
        steps = np.floor(moment.epochs * self.steps_per_epoch + EPSILON).astype(np.int64)
        last = int(steps.max(initial=0))
        if last >= len(self._table):
            self._simulate(2 * last + 1)
        return np.array(self._table)[steps]

    def _simulate(self, steps: int) -> None:
        """Make the table of the first ``steps`` steps, from the beginning."""
        assert self.groups is not None
        stand_in = torch.optim.SGD(
            [{**group, "params": [torch.nn.Parameter(torch.zeros(()))]} for group in self.groups], lr=0.1
        )
        scheduler = self._made(stand_in)
        begun = [(float(group["lr"]), _momenta(group)) for group in stand_in.param_groups]
        self._table.clear()
        for _ in range(steps + 1):
            self._table.append(float(stand_in.param_groups[0]["lr"]))
            self._check_groups(stand_in, begun)
            stand_in.step()  # A scheduler warns if it is stepped before the optimiser.
            try:
                scheduler.step()
            except ValueError as error:  # such as OneCycleLR after its last step
                if len(self._table) <= 1:
                    raise ParameterError(f"The schedule {_name(self.factory)} fails: {error}") from error
                self._table.extend([self._table[-1]] * (steps - len(self._table) + 1))
                return

    def _made(self, stand_in: torch.optim.Optimizer) -> LRScheduler:
        try:
            scheduler = self.factory(stand_in)
        except Exception as error:
            raise ParameterError(
                f"The scheduler {_name(self.factory)} cannot be made: {error}. {_what_to_write(self.factory)}"
            ) from error
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ParameterError(
                "ReduceLROnPlateau reacts to losses, which workers of a run do not wait for: use a scheduler of "
                "progress alone such as StepLR, or Budget(patience=...)."
            )
        if not isinstance(scheduler, LRScheduler):
            raise ParameterError(
                f"The 'schedule' parameter makes {type(scheduler).__name__}, and not a scheduler of PyTorch. "
                f"{_what_to_write(self.factory)}"
            )
        return scheduler

    def _check_groups(self, stand_in: torch.optim.Optimizer, begun: list[tuple[float, object]]) -> None:
        """Raise ParameterError unless the scheduler multiplies all step sizes by one factor, and changes no more."""
        first = float(stand_in.param_groups[0]["lr"]) / begun[0][0] if begun[0][0] else 1.0
        for group, (step, momenta) in zip(stand_in.param_groups, begun, strict=True):
            if _momenta(group) != momenta:
                raise ParameterError(
                    f"The scheduler {_name(self.factory)} changes the momentum, and a schedule changes step sizes "
                    "alone: give it cycle_momentum=False."
                )
            if abs(float(group["lr"]) - first * step) > 1e-6 * max(abs(step), 1e-30):
                raise ParameterError(
                    f"The scheduler {_name(self.factory)} changes parameter groups by different factors, and a "
                    "schedule has one factor for all: give all groups the same course."
                )


def schedule_of(schedule: Any) -> Any:
    """Return the schedule of a scheduler of PyTorch that is given as a class or a partial; return others unchanged.

    Raises
    ------
    ParameterError
        If it is a scheduler that exists, and belongs to an optimiser.
    """
    if isinstance(schedule, LRScheduler):
        raise ParameterError(
            f"The 'schedule' parameter cannot be a {type(schedule).__name__} that exists: it steps its own optimiser, "
            f"in this process alone. {_what_to_write(type(schedule))}"
        )
    made = schedule.func if isinstance(schedule, partial) else schedule
    if isinstance(made, type) and issubclass(made, (LRScheduler, ReduceLROnPlateau)):
        return TorchSchedule(schedule)
    return schedule


def _momenta(group: dict[str, Any]) -> object:
    return group.get("momentum"), tuple(group.get("betas") or ())


def _name(factory: Any) -> str:
    made = factory.func if isinstance(factory, partial) else factory
    return getattr(made, "__name__", type(made).__name__)


def _what_to_write(factory: Any) -> str:
    made = factory.func if isinstance(factory, partial) else factory
    if isinstance(made, type):
        return f"Write schedule=functools.partial({made.__name__}, ...) with its arguments, but without the optimizer."
    return "Write schedule=hogwild.TorchSchedule(lambda optimizer: ...) with a function that makes the scheduler."
