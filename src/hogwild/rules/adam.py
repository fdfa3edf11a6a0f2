"""Adam (Kingma and Ba 2015): momentum, and a step size per coordinate."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from hogwild.keywords import advised
from hogwild.registry import invalid_parameter
from hogwild.rules.rule import ONE, Constants, Rule, Table, settle, shrink


def adam(
    state: Table, p: int, g: np.float32, rate: np.float32, l1: np.float32, l2: np.float32, constants: Constants
) -> None:
    """Apply m <- mean of g; v <- mean of g^2; w <- shrink(w - rate m / sqrt(v)) to row ``p``.

    Both means are corrected for their start at zero. A row holds w, m, v, beta1^visits and beta2^visits; the last two
    are the remaining weights of the start.
    """
    beta1, beta2 = constants[0], constants[1]
    m = settle(beta1 * state[p, 1] + (ONE - beta1) * g)
    v = settle(beta2 * state[p, 2] + (ONE - beta2) * g * g)
    left1 = settle(beta1 * state[p, 3])
    left2 = settle(beta2 * state[p, 4])
    state[p, 1] = m
    state[p, 2] = v
    state[p, 3] = left1
    state[p, 4] = left2
    own_rate = rate / (sqrt(v / (ONE - left2)) + constants[2])
    state[p, 0] = shrink(state[p, 0] - own_rate * m / (ONE - left1), own_rate, l1, l2)


@advised(step="The schedule has the step: hogwild.minimise(problem, rule='adam', schedule=0.1).")
@dataclass(frozen=True, slots=True)
class Adam(Rule):
    """Adam (Kingma and Ba 2015), lazy: the means of a coordinate change only in terms that touch it.

    Parameters
    ----------
    beta1 : float, default 0.9
        Decay rate of the mean of gradients, at least 0 and below 1.
    beta2 : float, default 0.999
        Decay rate of the mean of squared gradients, at least 0 and below 1.
    epsilon : float, default 1e-8
        Positive number that is added to the root of the mean of squares.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    References
    ----------
    D. P. Kingma and J. Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015.
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    initial = (0.0, 0.0, 0.0, 1.0, 1.0)
    step = staticmethod(adam)

    def __post_init__(self) -> None:
        for name in ("beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise invalid_parameter(name, "at least 0 and below 1", getattr(self, name))
        if not self.epsilon > 0:
            raise invalid_parameter("epsilon", "a positive number", self.epsilon)

    @property
    def constants(self) -> tuple[float, ...]:
        """Both betas and epsilon."""
        return self.beta1, self.beta2, self.epsilon
