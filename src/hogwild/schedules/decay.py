"""Step sizes that stay constant or fall: in steps, in a line or along a cosine, by rounds, or when the loss stalls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from hogwild.registry import invalid_parameter, is_number
from hogwild.schedules.schedule import Moment, Rates, Schedule, Step, check_step, positive_step


@dataclass(frozen=True, slots=True)
class Constant(Schedule):
    """Constant step size.

    Parameters
    ----------
    step : float or "auto", default "auto"
        Step size; "auto" chooses it by short trial runs on a sample.

    Raises
    ------
    ParameterError
        If ``step`` is neither a positive number nor "auto".
    """

    step: Step = "auto"

    is_constant = True

    def __post_init__(self) -> None:
        check_step(self.step)

    def __call__(self, moment: Moment) -> Rates:
        return np.full(moment.updates.shape, positive_step(self))


@dataclass(frozen=True, slots=True)
class Steps(Schedule):
    """Step decay: the step size is multiplied by ``factor`` at each of the fractions ``at`` of the budget.

    Parameters
    ----------
    step : float or "auto", default "auto"
        Initial step size; "auto" chooses it by short trial runs on a sample.
    at : tuple of float, default (0.5, 0.75)
        Fractions of the budget, between 0 and 1.
    factor : float, default 0.1
        Positive factor of the step size at each fraction.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.
    """

    step: Step = "auto"
    at: tuple[float, ...] = (0.5, 0.75)
    factor: float = 0.1

    def __post_init__(self) -> None:
        check_step(self.step)
        if not all(is_number(fraction) and 0 < fraction < 1 for fraction in self.at):
            raise invalid_parameter("at", "fractions between 0 and 1", self.at)
        if not is_number(self.factor) or not self.factor > 0:
            raise invalid_parameter("factor", "a positive number", self.factor)

    def __call__(self, moment: Moment) -> Rates:
        passed = np.searchsorted(np.sort(self.at), moment.fraction, side="right")
        rates: Rates = positive_step(self) * self.factor ** passed.astype(float)
        return rates


@dataclass(frozen=True, slots=True)
class Cosine(Schedule):
    """Cosine schedule: from ``step`` to ``floor * step`` along half a cosine, over the budget of the run.

    Parameters
    ----------
    step : float or "auto", default "auto"
        Initial step size; "auto" chooses it by short trial runs on a sample.
    floor : float, default 0.0
        Final step size as a fraction of the initial one, between 0 and 1.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.
    """

    step: Step = "auto"
    floor: float = 0.0

    numbers = ("floor",)

    is_proportional = True

    def __post_init__(self) -> None:
        check_step(self.step)
        if not is_number(self.floor) or not 0 <= self.floor <= 1:
            raise invalid_parameter("floor", "between 0 and 1", self.floor)

    def __call__(self, moment: Moment) -> Rates:
        rates: Rates = np.clip(moment.fraction, 0, 1)
        rates *= np.pi
        np.cos(rates, out=rates)
        rates *= 0.5
        rates += 0.5
        if self.floor:
            rates *= 1 - self.floor
            rates += self.floor
        rates *= positive_step(self)
        return rates


AUTO_FLOOR = 0.2  # final share of the step size in a run of one epoch; in one of n epochs it is an n-th of that


@dataclass(frozen=True, slots=True)
class Cooldown(Schedule):
    """Constant step size with a cooldown: from the fraction ``start`` of the budget on, it falls in a line.

    This is the default with rules whose own steps fall, such as AdaGrad and FTRL. A step that falls to zero too early
    or too far wastes the last rows of a run of few epochs.

    Parameters
    ----------
    step : float or "auto", default "auto"
        Initial step size; "auto" chooses it by short trial runs on a sample.
    start : float, default 0.25
        Fraction of the budget at which the step size begins to fall, at least 0 and below 1.
    floor : float or "auto", default "auto"
        Final step size as a fraction of the initial one, between 0 and 1; "auto" is 0.2 divided by the epochs.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> moment = Moment(np.arange(1.0, 6.0), 4 * np.linspace(0, 1, 5), np.linspace(0, 1, 5))
    >>> Cooldown(1.0)(moment).round(3)
    array([1.   , 1.   , 0.683, 0.367, 0.05 ])

    References
    ----------
    A. Hägele et al., "Scaling Laws and Compute-Optimal Training Beyond Fixed Training Durations", NeurIPS 2024.
    """

    step: Step = "auto"
    start: float = 0.25
    floor: float | Literal["auto"] = "auto"

    numbers = ("start", "floor")

    is_proportional = True

    def __post_init__(self) -> None:
        check_step(self.step)
        if not is_number(self.start) or not 0 <= self.start < 1:
            raise invalid_parameter("start", "at least 0 and below 1", self.start)
        if self.floor != "auto" and not (isinstance(self.floor, int | float) and 0 <= self.floor <= 1):
            raise invalid_parameter("floor", "between 0 and 1, or 'auto'", self.floor)

    def __call__(self, moment: Moment) -> Rates:
        spent = np.clip(moment.fraction, 0, 1)
        left = np.minimum((1 - spent) / (1 - self.start), 1)
        floor = self._auto_floor(moment.epochs, spent) if self.floor == "auto" else self.floor
        rates: Rates = left + floor * (1 - left)
        rates *= positive_step(self)
        return rates

    @staticmethod
    def _auto_floor(epochs: Rates, spent: Rates) -> Rates:
        """Return the floor for a run of as many epochs as the pace so far leads to, of at least one."""
        whole = np.divide(epochs, spent, out=np.ones_like(spent), where=spent > 0)
        return AUTO_FLOOR / np.maximum(whole, 1)


@dataclass(frozen=True, slots=True)
class Backoff(Schedule):
    """Backoff: a stretch of ``epochs`` epochs at ``step``, then ``epochs / beta`` at ``beta * step``, and so on.

    The convergence rate is 1/k (Niu et al. 2011, section 5). The paper's experiments use beta 0.9; about 0.37 is best
    in theory.

    Parameters
    ----------
    step : float or "auto", default "auto"
        Step size of the first stretch; "auto" chooses it by short trial runs on a sample.
    beta : float, default 0.9
        Factor of the step size from one stretch to the next, between 0 and 1.
    epochs : float, default 1.0
        Length of the first stretch in epochs.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    F. Niu, B. Recht, C. Ré and S. J. Wright, "HOGWILD!: A Lock-Free Approach to Parallelizing Stochastic Gradient
    Descent", NIPS 2011.
    """

    step: Step = "auto"
    beta: float = 0.9
    epochs: float = 1.0

    numbers = ("beta", "epochs")

    def __post_init__(self) -> None:
        check_step(self.step)
        if not is_number(self.beta) or not 0 < self.beta < 1:
            raise invalid_parameter("beta", "between 0 and 1", self.beta)
        if not is_number(self.epochs) or not self.epochs > 0:
            raise invalid_parameter("epochs", "a positive number", self.epochs)

    def __call__(self, moment: Moment) -> Rates:
        # The first k stretches last epochs * (r^k - 1) / (r - 1) in total, with r = 1 / beta. Solve this for k.
        ratio = 1 / self.beta
        done = np.log1p(moment.epochs / self.epochs * (ratio - 1)) / np.log(ratio)
        rates: Rates = positive_step(self) * self.beta ** np.floor(done + 1e-9)
        return rates


@dataclass(frozen=True, slots=True)
class Adaptive(Schedule):
    """Adaptive schedule: a constant step size while the objective falls, then ``step / factor``, down to ``least``.

    The schedule needs a budget with a ``tolerance``, which defines a stall. scikit-learn calls this schedule
    ``adaptive``.

    Parameters
    ----------
    step : float or "auto", default "auto"
        Initial step size; "auto" chooses it by short trial runs on a sample.
    factor : float, default 5.0
        Divisor of the step size after a stall, above 1.
    least : float, default 1e-6
        Step size at or below which a stall ends the run.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> Adaptive(step=0.1).after_stall()
    Adaptive(step=0.02, factor=5.0, least=1e-06)
    """

    step: Step = "auto"
    factor: float = 5.0
    least: float = 1e-6

    numbers = ("factor", "least")

    needs_stall = True

    def __post_init__(self) -> None:
        check_step(self.step)
        if not is_number(self.factor) or not self.factor > 1:
            raise invalid_parameter("factor", "a number above 1", self.factor)

    def __call__(self, moment: Moment) -> Rates:
        return np.full(moment.updates.shape, positive_step(self))

    def after_stall(self) -> Adaptive | None:
        """Return the schedule that follows a stall of the objective; None ends the run."""
        return replace(self, step=positive_step(self) / self.factor) if positive_step(self) > self.least else None
