"""Follow the proximally regularised leader."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

from hogwild.naming import must
from hogwild.rules.rule import ONE


def ftrl(state: Any, p: Any, g: Any, rate: Any, l1: Any, l2: Any, constants: Any) -> None:
    """The minimiser of all gradients so far, all penalties so far, and all the pulls towards earlier iterates.

    A row holds w, the summed gradients z (less those pulls), the summed squares, the summed strength of the pulls and
    the number of visits. The strength never falls, so that any schedule may drive ``rate``.
    """
    squares = state[p, 2] + g * g
    strength = max(state[p, 3], (constants[0] + sqrt(squares)) / rate)
    visits = state[p, 4] + ONE
    z = state[p, 1] + g - (strength - state[p, 3]) * state[p, 0]
    state[p, 1] = z
    state[p, 2] = squares
    state[p, 3] = strength
    state[p, 4] = visits
    pull = visits * l1
    if z > pull:
        state[p, 0] = (pull - z) / (strength + visits * l2)
    elif z < -pull:
        state[p, 0] = (-pull - z) / (strength + visits * l2)
    else:
        state[p, 0] = 0


@dataclass(frozen=True, slots=True)
class FTRL:
    """FTRL-Proximal (McMahan et al. 2013): per-coordinate steps as in AdaGrad, and exact zeros under an L1 penalty.

    The penalties are those of the problem, counted once per visit, so that what is minimised is the same as with any
    other rule (the original counts L1 once in all). ``beta`` keeps the first steps of a coordinate small.
    """

    beta: float = 1.0

    initial = (0.0, 0.0, 0.0, 0.0, 0.0)
    step = staticmethod(ftrl)
    rests = False

    def __post_init__(self) -> None:
        if not self.beta > 0:
            raise must("beta", "a positive number", self.beta)

    @property
    def constants(self) -> tuple[float, ...]:
        """Beta alone."""
        return (self.beta,)
