"""Plain SGD of a single worker, with penalties on all weights at every step, as in textbooks and in scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass

from hogwild.registry import invalid_parameter
from hogwild.rules.rule import Rule, State
from hogwild.rules.sgd import sgd

# Columns of a weight's row. PAID: L1 penalty applied so far. SUM: sum of its iterates. SINCE: sum of scales up to which
# SUM is complete.
PAID, SUM, SINCE = 1, 2, 3
# Columns of the intercept's row. OWED: L1 penalty accumulated so far. SCALE: common scale of all weights. SQUARES and
# ABSOLUTES: squared length and sum of absolute values in the penalty. MET: objective of the terms. SEEN: updates made.
# AVERAGED: updates averaged. Column SUM is the sum of the intercept's iterates, as for weights.
OWED, SCALE, SQUARES, ABSOLUTES, MET, SEEN, AVERAGED = 1, 3, 4, 5, 6, 7, 8
UNKNOWN = -1.0


@dataclass(frozen=True, slots=True)
class Sequential(Rule):
    """Plain SGD by one worker, whose penalties apply to *all* weights at every step, as in scikit-learn.

    Every weight follows the path that it has in scikit-learn's SGD, to the last bit. Workers cannot share a step that
    reaches all weights without locks, so there is one worker.

    Parameters
    ----------
    step_size : str, default "scheduled"
        Choice of a term's step size; see ``hogwild.kernels.linear_build``.
    l1 : bool, default True
        Whether weights store the L1 penalty that was applied to them; a problem with an L1 penalty needs it.
    average_from : int, default 0
        Number of the update from which the mean of the iterates is the result; 0 is never. Averaging needs float64.
    precision : {"float32", "float64"}, default "float32"
        Type of the weights.
    track_objective : bool, default False
        Whether the objective is summed during the epoch, for ``Budget(monitor="training_objective")``.
    elastic_net : tuple of float, optional
        Strength of the whole penalty and the share of L1 in it, where they are known more exactly than from the
        problem's ``l1`` and ``l2``.

    Raises
    ------
    ParameterError
        If ``precision`` is unknown, or too low for averaging.
    """

    step_size: str = "scheduled"
    l1: bool = True
    average_from: int = 0
    precision: str = "float32"
    track_objective: bool = False
    elastic_net: tuple[float, float] | None = None

    step = staticmethod(sgd)
    single_worker = True
    position_columns = ()
    intercept_precision = "float64"

    def __post_init__(self) -> None:
        if self.precision not in ("float32", "float64") or (self.average_from and self.precision == "float32"):
            raise invalid_parameter("precision", "float32, or float64, which averages need", self.precision)

    @property
    def initial(self) -> tuple[float, ...]:
        """The initial weight, and the initial columns beside it."""
        return (0.0, 0.0, 0.0, 0.0) if self.l1 or self.average_from else (0.0,)

    @property
    def initial_intercept(self) -> tuple[float, ...]:
        """The initial intercept, and the initial columns beside it, in float64."""
        return (0.0, 0.0, 0.0, 1.0, UNKNOWN, 0.0, 0.0, 0.0, 0.0)

    def mixture(self, l1: float, l2: float) -> tuple[float, float]:
        """Return the strength of a penalty and the share of L1 in it.

        >>> Sequential().mixture(0.25, 0.75), Sequential(elastic_net=(0.1, 0.3)).mixture(1, 2)
        ((1.0, 0.25), (0.1, 0.3))
        """
        if self.elastic_net is not None:
            return self.elastic_net
        return l1 + l2, l1 / (l1 + l2) if l1 else 0.0

    def values(self, state: State) -> State:
        """Return the parameters of a run: the mean of the iterates if they are averaged, else the last iterate."""
        weights, bias = state
        averaged = bias[0, AVERAGED]
        if not averaged:
            return self.last(state)
        return weights[:, SUM : SUM + 1] / averaged, (bias[:, SUM : SUM + 1] / averaged).astype(weights.dtype)

    def last(self, state: State) -> State:
        """Return the last iterate."""
        weights, bias = state
        return weights[:, :1] * weights.dtype.type(bias[0, SCALE]), bias[:, :1].astype(weights.dtype)

    def take_objective(self, state: State) -> float:
        """Return the sum of the objective over the terms since the last call, and reset it."""
        found = float(state[1][0, MET])
        state[1][0, MET] = 0.0
        return found
