"""Follow the proximally regularised leader."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

from hogwild.registry import invalid_parameter
from hogwild.rules.rule import ONE, Rule, shrink


def ftrl(state: Any, p: Any, g: Any, rate: Any, l1: Any, l2: Any, constants: Any) -> None:
    """The minimiser of all gradients so far, all penalties so far, and all the pulls towards earlier iterates.

    A row holds w, the minimiser u without the penalties, the summed squares, the summed strength of the pulls and the
    number of visits. The strength never falls, so that any schedule may drive ``rate``. The usual form keeps the
    summed gradients less the pulls, which is ``-strength * u``: when workers write over each other, a strength that
    does not go with them would move the weight itself, while here it changes no more than the size of a step.
    """
    before = state[p, 3]
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
    """FTRL-Proximal (McMahan et al. 2013): per-coordinate steps as in AdaGrad, and exact zeros under an L1 penalty.

    The penalties are those of the problem, counted once per visit, so that what is minimised is the same as with any
    other rule (the original counts L1 once in all). ``beta`` keeps the first steps of a coordinate small.
    """

    beta: float = 1.0

    initial = (0.0, 0.0, 0.0, 0.0, 0.0)
    position_columns = (0, 1)
    step = staticmethod(ftrl)
    self_annealing = True

    def __post_init__(self) -> None:
        if not self.beta > 0:
            raise invalid_parameter("beta", "a positive number", self.beta)

    @property
    def constants(self) -> tuple[float, ...]:
        """Beta alone."""
        return (self.beta,)
