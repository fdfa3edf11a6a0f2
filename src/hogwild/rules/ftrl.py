"""FTRL-Proximal (McMahan et al. 2013): follow the proximally regularised leader."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from hogwild.keywords import advised
from hogwild.registry import invalid_parameter
from hogwild.rules.rule import ONE, ZERO, Constants, Rule, Table


def ftrl(
    state: Table, p: int, g: np.float32, rate: np.float32, l1: np.float32, l2: np.float32, constants: Constants
) -> None:
    """Set w to the minimiser of all gradients, all penalties, and all proximal terms around earlier iterates so far.

    A row holds w, the sum d of the penalties' derivatives where w is zero, the summed squared gradients, and the number
    of visits. The strength of all proximal terms together is ``(beta + sqrt(squares)) / rate``, and falls where a
    schedule rises.

    The usual form stores the summed gradients less the proximal terms. At the minimiser w they are ``-(strength w +
    d)``, and where w is not zero, d follows from w and the visits. So nothing is stored that has to match the weight:
    when workers overwrite each other, or changes are added in part, only the size of a step changes.
    """
    squares = state[p, 2] + g * g
    before = state[p, 3]
    visits = before + ONE
    strength = (constants[0] + sqrt(squares)) / rate
    w, d = state[p, 0], ZERO
    if l1 != 0:
        old, new = before * l1, visits * l1
        penalty = min(max(state[p, 1], -old), old) if w == 0 else (old if w > 0 else -old)
        total = strength * w + penalty + before * l2 * w - g
        if abs(total) <= new:
            w, d = ZERO, total
        else:
            w += (penalty - (new if total > 0 else -new) - g - l2 * w) / (strength + visits * l2)
    else:
        w -= (g + l2 * w) / (strength + visits * l2)
    state[p, 0] = w
    state[p, 1] = d
    state[p, 2] = squares
    state[p, 3] = visits


def shrinking(state: Table, p: int, rate: np.float32, constants: Constants) -> np.float32:
    """Return the change of a coordinate per unit of gradient, which falls with its summed squared gradients."""
    return rate / (constants[0] + sqrt(state[p, 2]))


@advised(step="The schedule has the step: hogwild.minimise(problem, rule='ftrl', schedule=0.1).")
@dataclass(frozen=True, slots=True)
class FTRL(Rule):
    """FTRL-Proximal (McMahan et al. 2013): a step size per coordinate as in AdaGrad, and exact zeros under L1.

    Every visit applies the problem's penalties once, so the objective is the same as with any other rule. The original
    applies L1 once in total.

    Parameters
    ----------
    beta : float, default 1.0
        Positive number that keeps the first steps of a coordinate small.

    Raises
    ------
    ParameterError
        If ``beta`` is not positive.

    References
    ----------
    H. B. McMahan et al., "Ad Click Prediction: a View from the Trenches", KDD 2013.
    """

    beta: float = 1.0

    initial = (0.0, 0.0, 0.0, 0.0)
    step = staticmethod(ftrl)
    effective_step = staticmethod(shrinking)
    self_annealing = True
    accumulator_columns = (2,)

    def __post_init__(self) -> None:
        if not self.beta > 0:
            raise invalid_parameter("beta", "a positive number", self.beta)

    @property
    def constants(self) -> tuple[float, ...]:
        """Beta alone."""
        return (self.beta,)
