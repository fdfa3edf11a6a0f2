"""Plain stochastic gradient descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hogwild.rules.rule import Rule, shrink


def sgd(state: Any, p: Any, g: Any, rate: Any, l1: Any, l2: Any, constants: Any) -> None:
    """Apply w <- shrink(w - rate g) to row ``p``."""
    state[p, 0] = shrink(state[p, 0] - rate * g, rate, l1, l2)


def whole(state: Any, p: Any, rate: Any, constants: Any) -> Any:
    """Return the rate, by which a unit of gradient moves every coordinate."""
    return rate


@dataclass(frozen=True, slots=True)
class SGD(Rule):
    """Plain stochastic gradient descent: ``w -= rate * g``."""

    initial = (0.0,)
    step = staticmethod(sgd)
    effective_step = staticmethod(whole)
    skips_zero_gradient = True
    # All coordinates move by the same multiple, so that L2 shrinks all by the same factor.
    uniform_step = True
