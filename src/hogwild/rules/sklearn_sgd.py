"""Plain steps of one worker alone, with penalties as textbooks and scikit-learn have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hogwild.registry import invalid_parameter
from hogwild.rules.sgd import sgd

PAID, SUM, SINCE = 1, 2, 3  # what a weight remembers: L1 it has paid, the sum of its iterates, and up to where
# What is kept beside the intercept: L1 owed so far, the sum of its iterates, the scale that all weights share, the
# squared length and the sum of sizes that the penalty is reckoned by, the objective met, updates made and averaged.
OWED, SCALE, SQUARES, ABSOLUTES, MET, SEEN, AVERAGED = 1, 3, 4, 5, 6, 7, 8
UNKNOWN = -1.0

State = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Sequential:
    """Steps of plain SGD whose penalties pull *all* weights at every step, instead of a term's own by its share.

    Every weight follows the path it has in scikit-learn's SGD, to the last bit. It takes a worker of its own: a step
    that reaches all weights cannot be shared without locks. ``pace`` says how large a step is (see
    ``hogwild.kernels.step_size``). An L1 penalty needs a rule that ``owes``: it remembers what each weight has paid.
    From update number ``averages`` on (0: never) what counts is the mean of the iterates, after every step; it takes
    the digits of float64. ``precision`` is that of the weights. One who ``watches`` adds up the objective on the way,
    for a budget that watches what was ``met``. ``mix`` is the strength of the whole penalty and the share of L1 in it,
    where they are known better than from their products, the problem's ``l1`` and ``l2``.
    """

    pace: str = "scheduled"
    owes: bool = True
    averages: int = 0
    precision: str = "float32"
    watches: bool = False
    mix: tuple[float, float] | None = None

    constants = (0.0,)
    step = staticmethod(sgd)
    rests = False
    alone = True

    def __post_init__(self) -> None:
        if self.precision not in ("float32", "float64") or (self.averages and self.precision == "float32"):
            raise invalid_parameter("precision", "float32, or float64, which averages need", self.precision)

    @property
    def initial(self) -> tuple[float, ...]:
        """A weight, and what it remembers."""
        return (0.0, 0.0, 0.0, 0.0) if self.owes or self.averages else (0.0,)

    @property
    def initial_intercept(self) -> tuple[float, ...]:
        """The intercept, and what is kept beside it, in float64."""
        return (0.0, 0.0, 0.0, 1.0, UNKNOWN, 0.0, 0.0, 0.0, 0.0)

    def mixture(self, l1: float, l2: float) -> tuple[float, float]:
        """The strength of a penalty and the share of L1 in it.

        >>> Sequential().mixture(0.25, 0.75), Sequential().mixture(0.0, 0.0), Sequential(mix=(0.1, 0.3)).mixture(1, 2)
        ((1.0, 0.25), (0.0, 0.0), (0.1, 0.3))
        """
        if self.mix is not None:
            return self.mix
        return l1 + l2, l1 / (l1 + l2) if l1 else 0.0

    def values(self, state: State) -> State:
        """The parameters that a run is for: the mean of the iterates if they are averaged, else the last."""
        weights, bias = state
        averaged = bias[0, AVERAGED]
        if not averaged:
            return self.last(state)
        return weights[:, SUM : SUM + 1] / averaged, (bias[:, SUM : SUM + 1] / averaged).astype(weights.dtype)

    def last(self, state: State) -> State:
        """The last of the iterates."""
        weights, bias = state
        return weights[:, :1] * weights.dtype.type(bias[0, SCALE]), bias[:, :1].astype(weights.dtype)

    def take_met(self, state: State) -> float:
        """The sum of the objective over the terms since the last call."""
        found = float(state[1][0, MET])
        state[1][0, MET] = 0.0
        return found
