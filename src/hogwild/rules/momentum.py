"""Gradient descent with a memory of where it was going."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hogwild.registry import invalid_parameter
from hogwild.rules.rule import Rule, shrink


def momentum(state: Any, p: Any, g: Any, rate: Any, l1: Any, l2: Any, constants: Any) -> None:
    """v <- beta v + g; w <- shrink(w - rate v)

    In the long run a gradient moves ``w`` by rate / (1 - beta), so the penalty pulls with that strength.
    """
    velocity = constants[0] * state[p, 1] + g
    state[p, 1] = velocity
    state[p, 0] = shrink(state[p, 0] - rate * velocity, rate * constants[1], l1, l2)


@dataclass(frozen=True, slots=True)
class Momentum(Rule):
    """Heavy-ball momentum; a coordinate's velocity rests while no term touches it.

    Asynchrony itself acts like momentum (Mitliagkas et al. 2016): with many workers, less is more.
    """

    beta: float = 0.9

    initial = (0.0, 0.0)
    step = staticmethod(momentum)

    def __post_init__(self) -> None:
        if not 0 <= self.beta < 1:
            raise invalid_parameter("beta", "at least 0 and below 1", self.beta)

    @property
    def constants(self) -> tuple[float, ...]:
        """Beta, and the factor by which it lengthens a step in the long run."""
        return self.beta, 1 / (1 - self.beta)
