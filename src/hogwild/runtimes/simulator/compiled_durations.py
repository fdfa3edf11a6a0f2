"""Distributions of durations as numbers, for those that a compiled event loop can draw from."""

from __future__ import annotations

from hogwild.delays import (
    NONE,
    Always,
    Delay,
    DelayOption,
    Exponential,
    HeavyTail,
    LogNormal,
    Normal,
    Slowed,
    named,
    per_worker,
)
from hogwild.kernels.simulation.tables import ALWAYS, EXPONENTIAL, HEAVY_TAIL, LOG_NORMAL, NORMAL


def as_numbers(delay: Delay) -> tuple[int, float, float] | None:
    """Return the kind and the two parameters of a distribution; None for one that is not compiled.

    >>> as_numbers(Normal(0.01, 0.002))
    (1, 0.01, 0.002)
    """
    if isinstance(delay, Always):
        return ALWAYS, delay.seconds, 0.0
    if isinstance(delay, Normal):
        return NORMAL, delay.mean, delay.deviation
    if isinstance(delay, LogNormal):
        return LOG_NORMAL, delay.median, delay.spread
    if isinstance(delay, Exponential):
        return EXPONENTIAL, delay.mean, 0.0
    if isinstance(delay, HeavyTail):
        return HEAVY_TAIL, delay.least, delay.tail
    return None


def split(delay: Delay) -> tuple[tuple[int, float, float] | None, dict[int, float]]:
    """Return a distribution as numbers, and the factors of slow workers; None for one that is not compiled."""
    if isinstance(delay, Slowed):
        return as_numbers(named(delay.usual)), dict(delay.times)
    return as_numbers(delay), {}


def constant_delays(delay: DelayOption, workers: int) -> list[float] | None:
    """Return the seconds that each worker waits with an update; None if they are random.

    >>> constant_delays({1: 0.5}, 3), constant_delays("exponential:0.1", 3)
    ([0.0, 0.5, 0.0], None)
    """
    given = per_worker(delay)
    each = [given.get(number, NONE) if isinstance(given, dict) else given for number in range(workers)]
    constant = [found.seconds for found in each if isinstance(found, Always)]
    return constant if len(constant) == workers else None
