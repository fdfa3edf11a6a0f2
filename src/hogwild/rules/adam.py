"""Momentum, and a step of its own for every coordinate."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

from hogwild.registry import invalid_parameter
from hogwild.rules.rule import ONE, Rule, shrink


def adam(state: Any, p: Any, g: Any, rate: Any, l1: Any, l2: Any, constants: Any) -> None:
    """m <- mean of g; v <- mean of g^2, both corrected for their start at zero; w <- shrink(w - rate m / sqrt(v))

    A row holds w, m, v and what is left of the two starts, beta1^visits and beta2^visits.
    """
    beta1, beta2 = constants[0], constants[1]
    m = beta1 * state[p, 1] + (ONE - beta1) * g
    v = beta2 * state[p, 2] + (ONE - beta2) * g * g
    left1 = beta1 * state[p, 3]
    left2 = beta2 * state[p, 4]
    state[p, 1] = m
    state[p, 2] = v
    state[p, 3] = left1
    state[p, 4] = left2
    own_rate = rate / (sqrt(v / (ONE - left2)) + constants[2])
    state[p, 0] = shrink(state[p, 0] - own_rate * m / (ONE - left1), own_rate, l1, l2)


@dataclass(frozen=True, slots=True)
class Adam(Rule):
    """Adam (Kingma and Ba 2015), lazily: the means of a coordinate rest while no term touches it."""

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
