"""Difference between two settings over the same seeds: its confidence interval, and what could have been seen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy.stats import t as student

from hogwild.lab.experiment import Results, spelt

LEVEL, POWER = 0.05, 0.8


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean of paired differences, with its confidence interval and the least difference that is likely to be seen.

    The interval is that of Student's t, for a level of 95%. ``detectable`` is the size of a true difference whose
    interval leaves out zero in about 80% of experiments with as many seeds and as large a spread. A difference of zero
    that was not detected says nothing about true differences smaller than that.

    >>> Difference.of([1.0, 2.0, 3.0, 4.0], [0.0, 0.9, 2.1, 3.0])
    Difference(value=1.0, low=0.87, high=1.13, detectable=0.17, count=4)
    >>> str(Difference(1.0, 0.87, 1.13, 0.17, 4)), Difference(1.0, 0.87, 1.13, 0.17, 4).seen
    ('1 (0.87 to 1.13)', True)
    """

    value: float
    low: float
    high: float
    detectable: float
    count: int

    @classmethod
    def of(
        cls, one: Sequence[float | None], other: Sequence[float | None], comparisons: int = 1
    ) -> Difference:  # fmt: skip
        """Compare two sequences of values, pair by pair; pairs with a value that is missing or not finite are left out.

        Parameters
        ----------
        one, other : sequence of float or None
            Values of the same seeds. The difference is ``one`` less ``other``.
        comparisons : int, default 1
            Number of comparisons that are made together: their intervals are so much wider that all of them together
            hold at the level of 95% (Bonferroni).
        """
        pairs = [
            a - b for a, b in zip(one, other, strict=True)
            if a is not None and b is not None and math.isfinite(a) and math.isfinite(b)
        ]  # fmt: skip
        count = len(pairs)
        if count < 2:
            return cls(pairs[0] if pairs else math.nan, -math.inf, math.inf, math.inf, count)
        mean = sum(pairs) / count
        error = math.sqrt(sum((pair - mean) ** 2 for pair in pairs) / (count - 1) / count)
        reach = float(student.ppf(1 - LEVEL / comparisons / 2, count - 1))
        beyond = float(student.ppf(POWER, count - 1))
        return cls(
            _rounded(mean), _rounded(mean - reach * error), _rounded(mean + reach * error),
            _rounded((reach + beyond) * error), count,
        )  # fmt: skip

    @property
    def seen(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0

    @property
    def size(self) -> str:
        """The least difference that is likely to be seen, in words: one seed alone tells nothing about it."""
        return spelt(self.detectable) if math.isfinite(self.detectable) else "unknown size"

    @property
    def with_power(self) -> str:
        """The difference with its interval, and the least difference that is likely to be seen, in words.

        >>> Difference(1.0, 0.87, 1.13, 0.17, 4).with_power, Difference.of([1.5], [1.0]).with_power
        ('1 (0.87 to 1.13), seen from 0.17', '0.5 (one seed)')
        """
        if self.count < 2:
            return f"{self} (one seed)" if self.count else str(self)
        return f"{self}, seen from {self.size}"

    def __str__(self) -> str:
        if not self.count:
            return "unknown"
        if self.count < 2:
            return spelt(self.value)
        return f"{spelt(self.value)} ({spelt(self.low)} to {spelt(self.high)})"


def paired(
    results: Results,
    figure: str,
    one: Mapping[str, object],
    other: Mapping[str, object],
    comparisons: int = 1,
) -> Difference:
    """Compare the values of a figure with the settings ``one`` and ``other``, seed by seed.

    >>> records = tuple({"w": w, "seed": seed, "loss": w + 0.1 * seed * w} for w in (1, 2) for seed in range(3))
    >>> paired(Results(records), "loss", {"w": 2}, {"w": 1}).value
    1.1
    """
    first, second = (
        {record["seed"]: record.get(figure) for record in results.where(**settings).records}
        for settings in (one, other)
    )
    seeds = [seed for seed in first if seed in second]
    return Difference.of([first[seed] for seed in seeds], [second[seed] for seed in seeds], comparisons)


def _rounded(value: float) -> float:
    """Round to four significant digits, so that a report says no more than is known."""
    return float(f"{value:.4g}")
