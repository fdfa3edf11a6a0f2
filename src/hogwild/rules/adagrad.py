"""AdaGrad (Duchi et al. 2011): a step size per coordinate, which falls with its squared gradients.

Workers of ``Hogwild`` apply this update to shared rows without a lock: the kernels bind it with the access "free" of
:mod:`hogwild.kernels.sync_policies`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from hogwild.keywords import advised
from hogwild.registry import invalid_parameter
from hogwild.rules.rule import Constants, Rule, Table, shrink


def adagrad(
    state: Table, p: int, g: np.float32, rate: np.float32, l1: np.float32, l2: np.float32, constants: Constants
) -> None:
    """Apply a <- a + g^2; w <- shrink(w - rate g / sqrt(a)) to row ``p``.

    Without L1, one division serves both the step and its penalty.
    """
    a = state[p, 1] + g * g
    state[p, 1] = a
    root, w = sqrt(a), state[p, 0]
    if l1 != 0:
        state[p, 0] = shrink(w - rate / root * g, rate / root, l1, l2)
    else:
        state[p, 0] = w - rate * (g + w * l2) / (root + rate * l2)


def shrinking(state: Table, p: int, rate: np.float32, constants: Constants) -> np.float32:
    """Return the change of a coordinate per unit of gradient, which falls with its accumulated gradients."""
    return rate / sqrt(state[p, 1])


@advised(step="The schedule has the step: hogwild.minimise(problem, rule='adagrad', schedule=0.1).")
@dataclass(frozen=True, slots=True)
class AdaGrad(Rule):
    """AdaGrad (Duchi et al. 2011): the step size of a coordinate is ``rate / sqrt(sum of its squared gradients)``.

    Frequent coordinates take small steps, and rare ones large steps. Delayed gradients do not harm convergence much
    (Duchi et al. 2013). So AdaGrad is the rule of choice for sparse data and many workers.

    Parameters
    ----------
    initial_accumulator : float, default 1e-6
        Initial value of the sum of squared gradients.

    Raises
    ------
    ParameterError
        If ``initial_accumulator`` is not positive.

    References
    ----------
    J. Duchi, E. Hazan and Y. Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization",
    JMLR 12, 2011.

    J. Duchi, M. Jordan and B. McMahan, "Estimation, Optimization, and Parallelism when Data is Sparse", NIPS 2013.
    """

    initial_accumulator: float = 1e-6

    step = staticmethod(adagrad)
    effective_step = staticmethod(shrinking)
    skips_zero_gradient = True
    self_annealing = True
    accumulator_columns = (1,)
    shrinks_at_once = True

    def __post_init__(self) -> None:
        if not self.initial_accumulator > 0:
            raise invalid_parameter("initial_accumulator", "a positive number", self.initial_accumulator)

    @property
    def initial(self) -> tuple[float, ...]:
        """The initial value, and the initial sum of squared gradients."""
        return 0.0, self.initial_accumulator
