"""Step size of one term: the scheduled one, or one that depends on the term's loss and length."""

from __future__ import annotations

from typing import Any

from hogwild.jit import Function

# mypy: disable-error-code="name-defined"
# ruff: noqa: F821


def scheduled(rate: Any, cost: Any, values: Any, start: Any, stop: Any) -> Any:
    """Return the step size of the schedule."""
    return rate


def passive_aggressive(rate: Any, cost: Any, values: Any, start: Any, stop: Any) -> Any:
    """Return the step size that just satisfies the term, at most ``rate`` (PA-I, Crammer et al. 2006)."""
    length = 0.0
    for j in range(start, stop):
        length += value(values, j) * value(values, j)
    return min(float(rate), cost / length) if length > 0 else 0.0


def passive_aggressive_2(rate: Any, cost: Any, values: Any, start: Any, stop: Any) -> Any:
    """Return the step size of PA-II (Crammer et al. 2006), which ``rate`` softens instead of clips."""
    length = 0.0
    for j in range(start, stop):
        length += value(values, j) * value(values, j)
    return cost / (length + 0.5 / rate)


PACES: dict[str, Function] = {
    "scheduled": scheduled,
    "passive-aggressive": passive_aggressive,
    "passive-aggressive-2": passive_aggressive_2,
}
