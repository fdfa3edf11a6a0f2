"""Stochastic gradient descent: plain, with momentum, and with the passive-aggressive step size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hogwild.keywords import advised
from hogwild.registry import invalid_parameter
from hogwild.rules.rule import Constants, Rule, Table, settle, shrink


def sgd(
    state: Table, p: int, g: np.float32, rate: np.float32, l1: np.float32, l2: np.float32, constants: Constants
) -> None:
    """Apply w <- shrink(w - rate g) to row ``p``."""
    state[p, 0] = shrink(state[p, 0] - rate * g, rate, l1, l2)


def whole(state: Table, p: int, rate: np.float32, constants: Constants) -> np.float32:
    """Return the rate, by which a unit of gradient moves every coordinate."""
    return rate


@advised(step="The schedule has the step: hogwild.minimise(problem, rule='sgd', schedule=0.1).")
@dataclass(frozen=True, slots=True)
class SGD(Rule):
    """Plain stochastic gradient descent: ``w -= rate * g``."""

    initial = (0.0,)
    step = staticmethod(sgd)
    effective_step = staticmethod(whole)
    skips_zero_gradient = True
    # All coordinates move by the same multiple, so that L2 shrinks all by the same factor.
    uniform_step = True


def momentum(
    state: Table, p: int, g: np.float32, rate: np.float32, l1: np.float32, l2: np.float32, constants: Constants
) -> None:
    """Apply v <- beta v + g; w <- shrink(w - rate v) to row ``p``.

    In the limit a gradient moves ``w`` by rate / (1 - beta), so the penalty is applied with that step size.
    """
    velocity = settle(constants[0] * state[p, 1] + g)
    state[p, 1] = velocity
    state[p, 0] = shrink(state[p, 0] - rate * velocity, rate * constants[1], l1, l2)


@advised(step="The schedule has the step: hogwild.minimise(problem, rule='momentum', schedule=0.1).")
@dataclass(frozen=True, slots=True)
class Momentum(Rule):
    """Heavy-ball momentum, lazy: the velocity of a coordinate changes only in terms that touch it.

    Asynchrony itself acts like momentum (Mitliagkas et al. 2016), which means that a run with many workers needs a
    smaller ``beta``.

    Parameters
    ----------
    beta : float, default 0.9
        Decay rate of the velocity, at least 0 and below 1.

    Raises
    ------
    ParameterError
        If ``beta`` is out of its range.

    References
    ----------
    I. Mitliagkas, C. Zhang, S. Hadjis and C. Ré, "Asynchrony Begets Momentum", Allerton 2016.
    """

    beta: float = 0.9

    initial = (0.0, 0.0)
    step = staticmethod(momentum)

    def __post_init__(self) -> None:
        if not 0 <= self.beta < 1:
            raise invalid_parameter("beta", "at least 0 and below 1", self.beta)

    @property
    def constants(self) -> tuple[float, ...]:
        """Beta, and the factor 1 / (1 - beta) by which beta lengthens a step in the limit."""
        return self.beta, 1 / (1 - self.beta)


@dataclass(frozen=True, slots=True)
class PassiveAggressive(Rule):
    """Passive-aggressive rule (Crammer et al. 2006), whose step just satisfies its term.

    The rule suits the losses "hinge" and "epsilon-insensitive".

    Parameters
    ----------
    variant : {1, 2}, default 1
        Variant of the paper. With 1 (PA-I), the schedule's step size is the largest step size (C in the paper). With 2
        (PA-II), it softens every step.

    Raises
    ------
    ParameterError
        If ``variant`` is neither 1 nor 2.

    References
    ----------
    K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz and Y. Singer, "Online Passive-Aggressive Algorithms", JMLR 7,
    2006.
    """

    variant: int = 1

    initial = (0.0,)
    step = staticmethod(sgd)
    skips_zero_gradient = True

    def __post_init__(self) -> None:
        if self.variant not in (1, 2):
            raise invalid_parameter("variant", "1 or 2", self.variant)

    @property
    def step_size(self) -> str:
        """The function of ``hogwild.kernels.linear_build`` that gives the step size of a term."""
        return "passive-aggressive" if self.variant == 1 else "passive-aggressive-2"
