"""Experiment: settings, a trial for each setting, their results with the machine they ran on, and an analysis."""

from __future__ import annotations

import functools
import math
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from hogwild.lab.report_model import Finding, Part, Series, Style
from hogwild.machine import this_machine

PACKAGES = ("hogwild", "numpy", "numba", "scipy", "scikit-learn", "torch")
# Seconds of the speed test on the reference machine, to which the durations of experiments refer.
REFERENCE_SECONDS = 0.079


def about() -> dict[str, dict[str, str]]:
    """Return a description of the machine and the versions of packages, in words."""
    here = this_machine()
    return {
        "machine": {
            "processor": here.processor,
            "cores": f"{here.usable_cores} of {here.logical_cores}",
            "memory": f"{here.memory / 2**30:.0f} GiB",
            "system": here.system,
        },
        "versions": {
            "Python": platform.python_version(),
            **{name: found for name in PACKAGES if (found := _version(name))},
        },
    }


@functools.cache
def pace() -> float:
    """Measure the speed of this machine, and return its time relative to the reference machine, at least 0.2."""
    numbers = np.random.default_rng(0).random(2**18)
    times = []
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(8):
            np.sort(numbers)
        times.append(time.perf_counter() - started)
    return max(0.2, min(times) / REFERENCE_SECONDS)


def in_words(seconds: float) -> str:
    """Return a duration in words.

    >>> in_words(40), in_words(200), in_words(9_000)
    ('40 seconds', '3 minutes', '2.5 hours')
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    return f"{round(seconds / 60)} minutes" if seconds < 5_400 else f"{seconds / 3600:.1f} hours"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Mean:
    """Mean over seeds, with the standard deviation of the values and the standard error of the mean.

    >>> Mean.of([1.0, 2.0, 3.0])
    Mean(value=2.0, spread=1.0, error=0.58, count=3)
    >>> str(Mean.of([1.0, 2.0, 3.0])), str(Mean.of([0.5])), str(Mean(19_123.4, 0, 812, 2)), str(Mean(3e-3, 0, 5e-5, 2))
    ('2.00 ± 0.58', '0.5', '19,120 ± 810', '0.003000 ± 0.000050')
    """

    value: float
    spread: float  # standard deviation of the values
    error: float  # standard error of the mean
    count: int

    @classmethod
    def of(cls, values: Sequence[float | None]) -> Mean:
        """Compute the mean of all values that are finite and not None."""
        known = [float(value) for value in values if value is not None and math.isfinite(value)]
        if not known:
            return cls(math.nan, math.nan, math.nan, 0)
        mean, count = sum(known) / len(known), len(known)
        spread = math.sqrt(sum((value - mean) ** 2 for value in known) / (count - 1)) if count > 1 else 0.0
        return cls(mean, spread, spread / math.sqrt(count), count)

    def __str__(self) -> str:
        if self.count < 2 or not self.error > 0:
            return spelt(self.value)
        # The error gets two significant digits, and the value as many decimals.
        digits = 1 - math.floor(math.log10(self.error))
        if digits > 7 or abs(self.value) >= 1e7:
            return f"{self.value:.3g} ± {self.error:.2g}"
        places = max(0, digits)
        return f"{round(self.value, digits):,.{places}f} ± {round(self.error, digits):,.{places}f}"

    def below(self, other: Mean) -> bool:
        """Return whether this mean is below another by more than two standard errors of the difference.

        >>> Mean(1.0, 0.1, 0.05, 4).below(Mean(2.0, 0.1, 0.05, 4)), Mean(1.0, 1, 0.5, 4).below(Mean(1.5, 1, 0.5, 4))
        (True, False)
        """
        return self.value + 2 * math.hypot(self.error, other.error) < other.value


@dataclass(frozen=True, slots=True)
class Results:
    """Records of trials. Each record has its settings, its ``seed`` and its figures."""

    records: tuple[Record, ...]

    def where(self, /, **settings: object) -> Results:
        """Return the records with these settings.

        >>> Results(({"w": 1, "loss": 2.0}, {"w": 2, "loss": 1.0})).where(w=2).records
        ({'w': 2, 'loss': 1.0},)
        """
        return Results(tuple(
            record for record in self.records if all(record.get(name) == value for name, value in settings.items())
        ))  # fmt: skip

    def values(self, name: str) -> list[Any]:
        """Return the distinct values of a setting, in the order in which they were tried."""
        return list(dict.fromkeys(record[name] for record in self.records if name in record))

    def mean(self, figure: str, /, **settings: object) -> Mean:
        """Compute the mean of a figure over the trials with these settings."""
        return Mean.of([record.get(figure) for record in self.where(**settings).records])

    def over(self, setting: str, figure: str, name: str, style: Style = "line", /, **settings: object) -> Series:
        """Return the mean of a figure as a curve over the values of a setting."""
        chosen = self.where(**settings)
        xs = sorted(chosen.values(setting), key=lambda value: (isinstance(value, str), value))
        means = [chosen.mean(figure, **{setting: x}) for x in xs]
        return Series(name, xs, [_known(mean.value) for mean in means], [_zero(mean.spread) for mean in means], style)

    def curve(self, x: str, y: str, name: str, style: Style = "line", /, **settings: object) -> Series:
        """Return the pointwise mean of recorded curves, cut to the length of the shortest curve."""
        records = [record for record in self.where(**settings).records if record.get(y)]
        if not records:
            return Series(name, [], [])
        points = min(len(record[y]) for record in records)
        means = [Mean.of([record[y][k] for record in records]) for k in range(points)]
        across = [Mean.of([record[x][k] for record in records]).value for k in range(points)]
        return Series(
            name, across, [_known(mean.value) for mean in means], [_zero(mean.spread) for mean in means], style
        )

    def __bool__(self) -> bool:
        return bool(self.records)


def lowest(results: Results, figure: str, by: str) -> object:
    """Return the value of a setting at which the mean of a figure is lowest."""
    return min(results.values(by), key=lambda value: _or_inf(results.mean(figure, **{by: value}).value))


def gain(one: Mean, other: Mean) -> str:
    """Return the ratio of two means in words, with its standard error.

    >>> gain(Mean(4.0, 0, 0.2, 4), Mean(2.0, 0, 0.1, 4))
    '2.00 ± 0.14'
    """
    if not other.value or not math.isfinite(one.value / other.value):
        return "an unknown number of"
    times = one.value / other.value
    error = abs(times) * math.hypot(one.error / one.value if one.value else 0.0, other.error / other.value)
    return str(Mean(times, 0.0, error, min(one.count, other.count)))


def each(names: Sequence[Any], make: Callable[[Any], Series]) -> tuple[Series, ...]:
    """Make a curve for each of the given values, without curves that have no points."""
    found = (make(name) for name in names)
    return tuple(series for series in found if any(value is not None for value in series.y))


def spelt(value: float) -> str:
    """Return a number as text with few digits.

    >>> spelt(12_345.678), spelt(0.5), spelt(1.23456e-9), spelt(2.0)
    ('12,346', '0.5', '1.23e-09', '2')
    """
    if abs(value) >= 1e3 and abs(value) < 1e9:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _zero(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _or_inf(value: float) -> float:
    return value if math.isfinite(value) else math.inf


Point = Mapping[str, Any]
"""Settings of a trial, plain values only."""

Trial = Callable[[Point, int], Mapping[str, Any]]
"""(settings, seed) -> figures: numbers, and lists or tables of numbers for curves."""

Reading = Callable[[Results], tuple[Sequence[Finding], Sequence[Part]]]


@dataclass(frozen=True, slots=True)
class Experiment:
    """Study that one command runs.

    Each of ``points`` is tried with several ``seeds``. ``quick`` has fewer points and seeds, for a first look. Trials
    that measure real time are ``timed``: they run in sequence, with the machine to themselves. Other trials run in
    parallel. ``seconds`` is the approximate duration of all trials on two cores, in full and quick.

    ``hogwild lab FILE`` needs a file that defines ``experiment = Experiment(...)``, and nothing else.
    """

    name: str
    title: str
    question: str
    method: str
    points: Sequence[Point]
    quick: Sequence[Point]
    trial: Trial
    read: Reading
    seconds: tuple[float, float]
    seeds: tuple[int, int] = (5, 2)
    timed: bool = False


def grid(**choices: Sequence[Any]) -> list[dict[str, Any]]:
    """Return every combination of the given choices.

    >>> grid(workers=[1, 2], step=[0.1])
    [{'workers': 1, 'step': 0.1}, {'workers': 2, 'step': 0.1}]
    """
    points: list[dict[str, Any]] = [{}]
    for name, values in choices.items():
        points = [{**point, name: value} for point in points for value in values]
    return points
