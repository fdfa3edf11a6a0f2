"""Distributions of durations, and the delays of workers that runtimes inject. Each distribution has one class.

Every runtime has the option ``delay``: the seconds that a worker waits with each of its updates.

==============================  ==============================================================
``delay``                       meaning
==============================  ==============================================================
``0.001``                       every worker waits 0.001 seconds with each update
``"normal:0.01:0.002"``         every worker waits a random time with each update
``{2: 0.05, 3: Normal(1, 2)}``  workers 2 and 3 wait, all others do not
``"2=0.05,3=normal:1:2"``       the same as text, as on the command line
==============================  ==============================================================
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol, runtime_checkable

import numpy as np

from hogwild.errors import ParameterError
from hogwild.registry import invalid_parameter, kebab, lookup


@runtime_checkable
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


def is_seconds(value: Any) -> bool:
    """Return whether a value is a finite number of at least 0, as every duration is."""
    return not isinstance(value, bool) and isinstance(value, Real) and 0 <= float(value) < math.inf


def _check(name: str, value: float) -> None:
    if not is_seconds(value):
        raise invalid_parameter(name, "a number of at least 0", value)


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
    usual : float, str or Delay
        Distribution of the duration of all other workers, or its name with numbers.
    times : mapping of int to float
        Factor of the duration, by worker number; at least 0.

    Raises
    ------
    ParameterError
        If ``times`` has a key that is no worker number, or a negative factor.

    Examples
    --------
    >>> slow = Slowed(0.01, {2: 10.0})
    >>> slow.draw(np.random.default_rng(0), 2, 0), slow.draw(np.random.default_rng(0), 1, 0)
    (0.1, 0.01)
    """

    usual: Delay | float | str
    times: Mapping[int, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "usual", named(self.usual, "usual"))
        check_by_worker("times", self.times, "factors of at least 0")

    def draw(self, random: np.random.Generator, worker: int, count: int) -> float:
        """Return a usual duration in seconds, multiplied by the factor of the worker."""
        return named(self.usual).draw(random, worker, count) * self.times.get(worker, 1.0)


DELAYS: dict[str, Any] = {
    kebab(kind.__name__): kind for kind in (Always, Normal, LogNormal, Exponential, HeavyTail)
}  # fmt: skip
_KINDS = (Always, Normal, LogNormal, Exponential, HeavyTail, Slowed)


DelayOption = Delay | float | str | Mapping[int, Delay | float | str]
"""Option ``delay`` of a runtime: one delay for all workers, or one for each of some workers."""
NONE = Always(0.0)
"""The delay of a worker that does not wait."""
_STREAM = 5  # number of the stream of random delays, among the random streams of a run


def named(delay: str | float | Delay, parameter: str = "delay") -> Delay:
    """Return a delay from a number of seconds or from a name with numbers, or a delay unchanged.

    Parameters
    ----------
    delay : str, float or Delay
        Number of seconds, name with numbers, or delay.
    parameter : str, default "delay"
        Name of the parameter in messages.

    Returns
    -------
    Delay
        The delay.

    Raises
    ------
    ParameterError
        If it is none of these.

    Examples
    --------
    >>> named(0.01), named("normal:0.01:0.002"), named("heavy-tail:0.001")
    (Always(seconds=0.01), Normal(mean=0.01, deviation=0.002), HeavyTail(least=0.001, tail=1.5))
    >>> named("-1", "latency")
    Traceback (most recent call last):
        ...
    hogwild.errors.ParameterError: The 'latency' parameter must be a number of seconds of at least 0. Got '-1' instead.
    """
    if isinstance(delay, _KINDS):  # Simulations call this for every message, and the check of a protocol is slow.
        return delay
    if isinstance(delay, (int, float, np.number)) and not isinstance(delay, bool):
        return _constant(delay, parameter)
    if not isinstance(delay, str):
        if isinstance(delay, Delay):
            return delay
        raise _no_delay(delay, parameter)
    try:
        float(delay)
    except ValueError:
        name, *numbers = delay.split(":")
    else:
        return _constant(delay, parameter)
    kind = lookup(parameter, name, DELAYS)
    try:
        return kind(*(float(number) for number in numbers))  # type: ignore[no-any-return]
    except ParameterError as error:  # names the number of the distribution that is wrong
        raise ParameterError(f"The {parameter!r} parameter cannot be {delay!r}: {error}") from None
    except (ValueError, TypeError):
        raise _no_delay(delay, parameter) from None


def _constant(seconds: str | float | np.number[Any], parameter: str) -> Always:
    if not is_seconds(float(seconds)):
        raise invalid_parameter(parameter, "a number of seconds of at least 0", seconds)
    return Always(float(seconds))


def per_worker(delay: DelayOption) -> Delay | dict[int, Delay]:
    """Check the option ``delay`` of a runtime.

    Parameters
    ----------
    delay : float, str, Delay, or mapping of int to these
        Seconds that a worker waits with each update, for all workers or for each of some.

    Returns
    -------
    Delay or dict
        The delay of all workers, or the delays of some by worker number.

    Raises
    ------
    ParameterError
        If a delay is negative or unknown, or if a worker's number is not one.

    Examples
    --------
    >>> per_worker(0.001)
    Always(seconds=0.001)
    >>> per_worker({2: 0.05}) == per_worker("2=0.05")
    True
    >>> per_worker("0=0.5,3=exponential:0.01")
    {0: Always(seconds=0.5), 3: Exponential(mean=0.01)}
    """
    if isinstance(delay, str) and ("=" in delay or "," in delay):
        delay = _parsed(delay)
    if not isinstance(delay, Mapping):
        return named(delay)
    if not all(_is_worker(worker) for worker in delay):
        raise _no_delay(delay)
    return {int(worker): named(each) for worker, each in delay.items()}


def _parsed(text: str) -> dict[int, Delay | float | str]:
    """Parse delays of some workers, such as ``2=0.05,3=exponential:0.01``."""
    found: dict[int, Delay | float | str] = {}
    for part in text.split(","):
        worker, sign, each = part.partition("=")
        if not sign or not worker.strip().isdecimal() or int(worker) in found:
            raise _no_delay(text)
        found[int(worker)] = each.strip()
    return found


def delayed_workers(delay: DelayOption) -> set[int]:
    """Return the numbers of the workers that a delay mentions.

    >>> delayed_workers({2: 0.05}), delayed_workers(Slowed(0.01, {3: 2.0})), delayed_workers(0.1)
    ({2}, {3}, set())
    """
    if isinstance(delay, Slowed):
        return set(delay.times)
    return set(delay) if isinstance(delay, Mapping) else set()


class DelayStream:
    """Delays of one worker's updates, one after the other. Equal seeds give equal delays.

    Parameters
    ----------
    delay : DelayOption
        The option ``delay`` of the runtime.
    seed : int
        Seed of the run.
    worker : int
        Number of the worker.
    incarnation : int, default 0
        Number of restarts of the worker before.

    Examples
    --------
    >>> DelayStream({1: 0.5}, seed=0, worker=1).total(3), DelayStream({1: 0.5}, seed=0, worker=0).total(3)
    (1.5, 0.0)
    >>> once, again = (DelayStream("exponential:0.1", seed=7, worker=2) for _ in range(2))
    >>> once.total(5) == sum(again.next() for _ in range(5))
    True
    """

    def __init__(self, delay: DelayOption, seed: int, worker: int, incarnation: int = 0) -> None:
        given = per_worker(delay)
        self._delay: Delay = given.get(worker, NONE) if isinstance(given, dict) else given
        self._random = np.random.default_rng([seed, _STREAM, worker, incarnation])
        self._worker, self._count = worker, 0

    @property
    def waits(self) -> bool:
        """Whether the worker waits at all."""
        return self._delay != NONE

    def next(self) -> float:
        """Return the delay of the next update, in seconds."""
        self._count += 1
        return max(0.0, self._delay.draw(self._random, self._worker, self._count - 1))

    def total(self, updates: int) -> float:
        """Return the sum of the delays of the next updates, in seconds."""
        if isinstance(self._delay, Always):
            self._count += updates
            return updates * self._delay.seconds
        return sum(self.next() for _ in range(updates))


def check_by_worker(parameter: str, numbers: Mapping[int, float], what: str) -> None:
    """Check numbers of at least 0 for some workers, by worker number.

    Raises
    ------
    ParameterError
        If a key is no worker number, or if a number is negative or infinite.

    Examples
    --------
    >>> check_by_worker("join_times", {2: -1.0}, "seconds")
    Traceback (most recent call last):
        ...
    hogwild.errors.ParameterError: ... must be seconds for some workers, such as {2: 0.5}. Got {2: -1.0} instead.
    """
    given: Any = numbers  # a user may give anything
    if not isinstance(given, Mapping) or not all(_is_worker(key) and is_seconds(given[key]) for key in given):
        raise invalid_parameter(parameter, f"{what} for some workers, such as {{2: 0.5}}", given)


def _is_worker(number: Any) -> bool:
    return not isinstance(number, bool) and isinstance(number, Integral) and int(number) >= 0


def _no_delay(got: object, parameter: str = "delay") -> ParameterError:
    be = "a number of seconds, or a name with its numbers such as 'normal:0.01:0.002'"
    if parameter == "delay":
        be += ", or delays of some workers such as {2: 0.05} or '2=0.05,3=exponential:0.01'"
    return invalid_parameter(parameter, be, got)
