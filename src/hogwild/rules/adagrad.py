"""A step of its own for every coordinate, shrinking with the gradients it has seen."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

from hogwild.registry import invalid_parameter
from hogwild.rules.rule import Rule, shrink


def adagrad(state: Any, p: Any, g: Any, rate: Any, l1: Any, l2: Any, constants: Any) -> None:
    """a <- a + g^2; w <- shrink(w - rate g / sqrt(a))

    Without L1 it is so written that one division does for the step and for its penalty.
    """
    a = state[p, 1] + g * g
    state[p, 1] = a
    root, w = sqrt(a), state[p, 0]
    if l1 != 0:
        state[p, 0] = shrink(w - rate / root * g, rate / root, l1, l2)
    else:
        state[p, 0] = w - rate * (g + w * l2) / (root + rate * l2)


def shrinking(state: Any, p: Any, rate: Any, constants: Any) -> Any:
    """A unit of gradient moves a coordinate the less, the more it has seen."""
    return rate / sqrt(state[p, 1])


@dataclass(frozen=True, slots=True)
class AdaGrad(Rule):
    """AdaGrad (Duchi et al. 2011): the step of a coordinate is ``rate / sqrt(sum of its squared gradients)``.

    Frequent coordinates take small steps and rare ones large steps, and delayed gradients do little harm
    (Duchi et al. 2013), which makes it the rule of choice for sparse data and many workers. ``initial_accumulator``
    is what the sum starts from.
    """

    initial_accumulator: float = 1e-6

    step = staticmethod(adagrad)
    effective_step = staticmethod(shrinking)
    skips_zero_gradient = True
    self_annealing = True

    def __post_init__(self) -> None:
        if not self.initial_accumulator > 0:
            raise invalid_parameter("initial_accumulator", "a positive number", self.initial_accumulator)

    @property
    def initial(self) -> tuple[float, ...]:
        """The value, and the sum of squared gradients."""
        return 0.0, self.initial_accumulator
