"""Stochastic dual coordinate ascent (Shalev-Shwartz and Zhang 2013), which needs no step size."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.rules.rule import Rule, State
from hogwild.rules.sgd import sgd

# Columns of a row's dual variables. DUAL: minus the derivative of the row's loss, with its weight. SQUARED_NORM: that
# of the row's features; 0 before the first visit.
DUAL, SQUARED_NORM = 0, 1
# Columns of the intercept. SUM: the sum of all dual variables, which is 0 at the optimum.
INTERCEPT, SUM = 0, 1


@dataclass(frozen=True, slots=True)
class SDCA(Rule):
    """Stochastic dual coordinate ascent (Shalev-Shwartz and Zhang 2013): each row's term is minimised exactly.

    Every row has a dual variable, and the weights are the sum of all rows times their dual variables, divided by l2
    times the number of rows. A step maximises the dual objective along one dual variable. There is no step size to
    choose, and where the penalty is not weak, a few epochs come close to the optimum. LIBLINEAR and Snap ML use the
    same method.

    It is for linear models with one output, with an L2 penalty and without L1, and for rows in memory. The intercept is
    not penalised: the method of multipliers brings the sum of the dual variables to 0.

    A schedule scales the steps, if there is one. Its usual value is 1.

    References
    ----------
    S. Shalev-Shwartz and T. Zhang, "Stochastic Dual Coordinate Ascent Methods for Regularized Loss Minimization", JMLR
    14, 2013.

    C.-J. Hsieh, H.-F. Yu and I. S. Dhillon, "PASSCoDe: Parallel Asynchronous Stochastic Dual Co-ordinate Descent", ICML
    2015.
    """

    step = staticmethod(sgd)
    has_duals = True
    self_annealing = True
    position_columns = ()
    intercept_precision = "float64"

    @property
    def initial(self) -> tuple[float, ...]:
        """The initial weight."""
        return (0.0,)

    @property
    def initial_intercept(self) -> tuple[float, ...]:
        """The initial intercept, and the initial sum of the dual variables."""
        return (0.0, 0.0)

    def values(self, state: State) -> State:
        """Return the weights and the intercept, not copied."""
        weights, bias, _ = state
        return weights, bias[:, :1].astype(weights.dtype)
