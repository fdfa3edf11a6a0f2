"""Plain stochastic gradient descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hogwild.rules.rule import Rule, shrink


def sgd(state: Any, p: Any, g: Any, rate: Any, l1: Any, l2: Any, constants: Any) -> None:
    """w <- shrink(w - rate g)"""
    state[p, 0] = shrink(state[p, 0] - rate * g, rate, l1, l2)


def whole(state: Any, p: Any, rate: Any, constants: Any) -> Any:
    """A unit of gradient moves every coordinate by the rate."""
    return rate


@dataclass(frozen=True, slots=True)
class SGD(Rule):
    """Plain stochastic gradient descent: ``w -= rate * g``."""

    initial = (0.0,)
    step = staticmethod(sgd)
    effective_step = staticmethod(whole)
    skips_zero_gradient = True
    uniform_step = True  # all coordinates are moved alike, so that L2 shrinks all by the same factor
