"""Step sizes that stay constant or fall: in steps, along a cosine, by rounds, or when the loss stops falling."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hogwild.registry import invalid_parameter
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
        if not all(0 < fraction < 1 for fraction in self.at):
            raise invalid_parameter("at", "fractions between 0 and 1", self.at)
        if not self.factor > 0:
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
        if not 0 <= self.floor <= 1:
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
        if not 0 < self.beta < 1:
            raise invalid_parameter("beta", "between 0 and 1", self.beta)
        if not self.epochs > 0:
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
        if not self.factor > 1:
            raise invalid_parameter("factor", "a number above 1", self.factor)

    def __call__(self, moment: Moment) -> Rates:
        return np.full(moment.updates.shape, positive_step(self))

    def after_stall(self) -> Adaptive | None:
        """Return the schedule that follows a stall of the objective; None ends the run."""
        return replace(self, step=positive_step(self) / self.factor) if positive_step(self) > self.least else None
