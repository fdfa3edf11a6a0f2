"""How long things take: numbers that are drawn, one file and one line for each distribution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hogwild.errors import ParameterError
from hogwild.registry import invalid_parameter, kebab, lookup


class Delay(Protocol):
    """A time in seconds that is drawn."""

    def draw(self, random: np.random.Generator, worker: int, count: int) -> float:
        """How long it takes this worker for the ``count``-th time."""


@dataclass(frozen=True, slots=True)
class Always:
    """Always the same."""

    seconds: float

    def __post_init__(self) -> None:
        _check("seconds", self.seconds)

    def draw(self, random: np.random.Generator, worker: int, count: int) -> float:
        """The same."""
        return self.seconds


@dataclass(frozen=True, slots=True)
class Normal:
    """About ``mean``, never less than a tenth of it."""

    mean: float
    deviation: float

    def __post_init__(self) -> None:
        _check("mean", self.mean)
        _check("deviation", self.deviation)

    def draw(self, random: np.random.Generator, worker: int, count: int) -> float:
        """A normal number, cut off."""
        return max(self.mean / 10, random.normal(self.mean, self.deviation))


@dataclass(frozen=True, slots=True)
class LogNormal:
    """``median`` times e to a normal number of this ``spread``."""

    median: float
    spread: float = 0.5

    def __post_init__(self) -> None:
        _check("median", self.median)
        _check("spread", self.spread)

    def draw(self, random: np.random.Generator, worker: int, count: int) -> float:
        """Skewed: now and then much longer."""
        return self.median * math.exp(random.normal(0.0, self.spread))


@dataclass(frozen=True, slots=True)
class Exponential:
    """Without memory."""

    mean: float

    def __post_init__(self) -> None:
        _check("mean", self.mean)

    def draw(self, random: np.random.Generator, worker: int, count: int) -> float:
        """An exponential number."""
        return float(random.exponential(self.mean))


@dataclass(frozen=True, slots=True)
class HeavyTail:
    """Pareto: at least ``least``, and rarely very long; with a ``tail`` of at most 1 without a mean."""

    least: float
    tail: float = 1.5

    def __post_init__(self) -> None:
        _check("least", self.least)
        if not self.tail > 0:
            raise invalid_parameter("tail", "a positive number", self.tail)

    def draw(self, random: np.random.Generator, worker: int, count: int) -> float:
        """A Pareto number."""
        return self.least * (1.0 + float(random.pareto(self.tail)))


@dataclass(frozen=True, slots=True)
class Slowed:
    """As ``usual``, but some workers take so many times as long.

    >>> slow = Slowed(Always(0.01), {2: 10.0})
    >>> slow.draw(np.random.default_rng(0), 2, 0), slow.draw(np.random.default_rng(0), 1, 0)
    (0.1, 0.01)
    """

    usual: Delay
    times: Mapping[int, float]

    def draw(self, random: np.random.Generator, worker: int, count: int) -> float:
        """Longer for the slow."""
        return self.usual.draw(random, worker, count) * self.times.get(worker, 1.0)


@dataclass(frozen=True, eq=False)
class Recorded:
    """As it was: for each worker the times that were measured, from the beginning again when there are no more."""

    seconds: Mapping[int, Any]

    def draw(self, random: np.random.Generator, worker: int, count: int) -> float:
        """What it took the last time."""
        times = self.seconds[worker]
        return float(times[count % len(times)])


DELAYS: dict[str, Any] = {
    kebab(kind.__name__): kind for kind in (Always, Normal, LogNormal, Exponential, HeavyTail)
}  # fmt: skip


def named(delay: str | float | Delay) -> Delay:
    """A delay from a number of seconds, from a name with numbers, or from itself.

    >>> named(0.01), named("normal:0.01:0.002"), named("heavy-tail:0.001")
    (Always(seconds=0.01), Normal(mean=0.01, deviation=0.002), HeavyTail(least=0.001, tail=1.5))
    """
    if isinstance(delay, (int, float)):
        return Always(float(delay))
    if not isinstance(delay, str):
        return delay
    try:
        return Always(float(delay))
    except ValueError:
        name, *numbers = delay.split(":")
    kind = lookup("delay", name, DELAYS)
    try:
        return kind(*(float(number) for number in numbers))  # type: ignore[no-any-return]
    except (ValueError, TypeError) as error:
        if isinstance(error, ParameterError):
            raise
        raise invalid_parameter(
            "delay", "a number of seconds, or a name with its numbers such as 'normal:0.01:0.002'", delay
        ) from None


def _check(name: str, value: float) -> None:
    if not (isinstance(value, (int, float)) and 0 <= value < math.inf):
        raise invalid_parameter(name, "a number of at least 0", value)
