"""FTRL-Proximal (McMahan et al. 2013): follow the proximally regularised leader."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from hogwild.registry import invalid_parameter
from hogwild.rules.rule import ONE, Constants, Rule, Table, shrink


def ftrl(
    state: Table, p: int, g: np.float32, rate: np.float32, l1: np.float32, l2: np.float32, constants: Constants
) -> None:
    """Set w to the minimiser of all gradients, all penalties, and all proximal terms around earlier iterates so far.

    A row holds w, the minimiser u without the penalties, the summed squared gradients, the summed strength of the
    proximal terms, and the number of visits. The strength never falls, so that ``rate`` may follow any schedule.

    The usual form stores the summed gradients less the proximal terms, which is ``-strength * u``. When workers
    overwrite each other, a strength that does not match that sum would move the weight itself. In the form used here,
    it changes only the size of a step. A strength of zero after visits is not known, because another node has it, and
    becomes the one that belongs to the squares.
    """
    before = state[p, 3]
    if before == 0 and state[p, 4] > 0:
        before = (constants[0] + sqrt(state[p, 2])) / rate
    squares = state[p, 2] + g * g
    strength = max(before, (constants[0] + sqrt(squares)) / rate)
    visits = state[p, 4] + ONE
    u = (before * state[p, 1] + (strength - before) * state[p, 0] - g) / strength
    state[p, 1] = u
    state[p, 2] = squares
    state[p, 3] = strength
    state[p, 4] = visits
    state[p, 0] = shrink(u, visits / strength, l1, l2)


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

    initial = (0.0, 0.0, 0.0, 0.0, 0.0)
    position_columns = (0, 1)
    private_columns = (3,)
    step = staticmethod(ftrl)
    self_annealing = True

    def __post_init__(self) -> None:
        if not self.beta > 0:
            raise invalid_parameter("beta", "a positive number", self.beta)

    @property
    def constants(self) -> tuple[float, ...]:
        """Beta alone."""
        return (self.beta,)
