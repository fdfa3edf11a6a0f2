"""Distributions of durations, for simulated updates, messages and reactions. Each distribution has one class."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hogwild.errors import ParameterError
from hogwild.registry import invalid_parameter, kebab, lookup


class Delay(Protocol):
    """Distribution of a duration in seconds."""

    def draw(self, random: np.random.Generator, worker: int, count: int) -> float:
        """Return a duration in seconds.

        Parameters
        ----------
        random : numpy.random.Generator
            Source of random numbers.
        worker : int
            Number of the worker.
        count : int
            Running number of the duration among those of this worker.
        """


@dataclass(frozen=True, slots=True)
class Always:
    """Constant duration.

    Parameters
    ----------
    seconds : float
        Duration in seconds, at least 0.
    """

    seconds: float

    def __post_init__(self) -> None:
        _check("seconds", self.seconds)

    def draw(self, random: np.random.Generator, worker: int, count: int) -> float:
        """Return the constant duration in seconds."""
        return self.seconds


@dataclass(frozen=True, slots=True)
class Normal:
    """Normal distribution, cut off below at a tenth of its mean.

    Parameters
    ----------
    mean : float
        Mean before the cut-off, in seconds, at least 0.
    deviation : float
        Standard deviation before the cut-off, in seconds, at least 0.
    """

    mean: float
    deviation: float

    def __post_init__(self) -> None:
        _check("mean", self.mean)
        _check("deviation", self.deviation)

    def draw(self, random: np.random.Generator, worker: int, count: int) -> float:
        """Return a normal random duration in seconds, at least a tenth of the mean."""
        return max(self.mean / 10, random.normal(self.mean, self.deviation))


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Log-normal distribution: ``median * exp(z)``, where z is normal with mean 0 and deviation ``spread``.

    Parameters
    ----------
    median : float
        Median in seconds, at least 0.
    spread : float, default 0.5
        Standard deviation of the logarithm, at least 0.
    """

    median: float
    spread: float = 0.5

    def __post_init__(self) -> None:
        _check("median", self.median)
        _check("spread", self.spread)

    def draw(self, random: np.random.Generator, worker: int, count: int) -> float:
        """Return a log-normal random duration in seconds. The distribution is skewed to long durations."""
        return self.median * math.exp(random.normal(0.0, self.spread))


@dataclass(frozen=True, slots=True)
class Exponential:
    """Exponential distribution, which has no memory.

    Parameters
    ----------
    mean : float
        Mean in seconds, at least 0.
    """

    mean: float

    def __post_init__(self) -> None:
        _check("mean", self.mean)

    def draw(self, random: np.random.Generator, worker: int, count: int) -> float:
        """Return an exponential random duration in seconds."""
        return float(random.exponential(self.mean))


@dataclass(frozen=True, slots=True)
class HeavyTail:
    """Pareto distribution: rarely, a duration is very long.

    Parameters
    ----------
    least : float
        Shortest duration in seconds, at least 0.
    tail : float, default 1.5
        Exponent of the tail, above 0. With an exponent of at most 1 the distribution has no mean.
    """

    least: float
    tail: float = 1.5

    def __post_init__(self) -> None:
        _check("least", self.least)
        if not self.tail > 0:
            raise invalid_parameter("tail", "a positive number", self.tail)

    def draw(self, random: np.random.Generator, worker: int, count: int) -> float:
        """Return a Pareto random duration in seconds."""
        return self.least * (1.0 + float(random.pareto(self.tail)))


@dataclass(frozen=True, slots=True)
class Slowed:
    """Distribution with a factor for each slow worker.

    Parameters
    ----------
    usual : Delay
        Distribution of the duration of all other workers.
    times : mapping of int to float
        Factor of the duration, by worker number.

    Examples
    --------
    >>> slow = Slowed(Always(0.01), {2: 10.0})
    >>> slow.draw(np.random.default_rng(0), 2, 0), slow.draw(np.random.default_rng(0), 1, 0)
    (0.1, 0.01)
    """

    usual: Delay
    times: Mapping[int, float]

    def draw(self, random: np.random.Generator, worker: int, count: int) -> float:
        """Return a usual duration in seconds, multiplied by the factor of the worker."""
        return self.usual.draw(random, worker, count) * self.times.get(worker, 1.0)


@dataclass(frozen=True, eq=False)
class Recorded:
    """Recorded durations, repeated from the first when all of them are used.

    Parameters
    ----------
    seconds : mapping of int to sequence of float
        Measured durations in seconds, by worker number.
    """

    seconds: Mapping[int, Any]

    def draw(self, random: np.random.Generator, worker: int, count: int) -> float:
        """Return the recorded duration number ``count`` of the worker, in seconds."""
        times = self.seconds[worker]
        return float(times[count % len(times)])


DELAYS: dict[str, Any] = {
    kebab(kind.__name__): kind for kind in (Always, Normal, LogNormal, Exponential, HeavyTail)
}  # fmt: skip


def named(delay: str | float | Delay) -> Delay:
    """Return a delay from a number of seconds or from a name with numbers, or a delay unchanged.

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
