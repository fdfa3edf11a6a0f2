"""How large the step of one term is: as scheduled, or as its own loss and length demand."""

from __future__ import annotations

from typing import Any

from hogwild.jit import Function

# mypy: disable-error-code="name-defined"
# ruff: noqa: F821


def scheduled(rate: Any, cost: Any, values: Any, start: Any, stop: Any) -> Any:
    """The step the schedule gives."""
    return rate


def passive_aggressive(rate: Any, cost: Any, values: Any, start: Any, stop: Any) -> Any:
    """The step that just satisfies the term, at most ``rate`` (PA-I, Crammer et al. 2006)."""
    length = 0.0
    for j in range(start, stop):
        length += value(values, j) * value(values, j)
    return min(float(rate), cost / length) if length > 0 else 0.0


def passive_aggressive_2(rate: Any, cost: Any, values: Any, start: Any, stop: Any) -> Any:
    """The same, softened by ``rate`` instead of cut off (PA-II)."""
    length = 0.0
    for j in range(start, stop):
        length += value(values, j) * value(values, j)
    return cost / (length + 0.5 / rate)


PACES: dict[str, Function] = {
    "scheduled": scheduled,
    "passive-aggressive": passive_aggressive,
    "passive-aggressive-2": passive_aggressive_2,
}
