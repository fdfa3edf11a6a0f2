"""The least effort with which a way of fitting comes to a target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.tools.way import Way

SEEDS = (0, 1)  # a target counts as met where it is met with each


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a fit came to."""

    seconds: float
    objective: float
    accuracy: float
    note: str = ""


Gap = Callable[[Outcome], float]
"""How far an outcome is from a target: above 0 it is missed."""

# A way is taken to settle elsewhere after so many strides that leave more than this share of the gap.
PATIENCE, CLOSER = 2, 0.9


@dataclass(eq=False)
class Trials:
    """Fits of one way, each made once and judged outside the clock."""

    way: Way
    judge: Callable[[Any, float], tuple[float, float]]
    made: dict[tuple[int, int], Outcome] = field(default_factory=dict)

    def at(self, rung: int, seed: int) -> Outcome:
        """The outcome of a fit with the effort of a rung of the ladder."""
        if (rung, seed) not in self.made:
            self.made[rung, seed] = self.fresh(rung, seed)
        return self.made[rung, seed]

    def fresh(self, rung: int, seed: int) -> Outcome:
        """The same, fitted anew."""
        fit = self.way.fit(self.way.ladder[rung], seed)
        return Outcome(fit.seconds, *self.judge(fit.weights, fit.intercept), fit.note)


def least_rung(trials: Trials, gap: Gap, limit: float) -> int | None:
    """The lowest rung that meets a target, found by longer and longer strides and then by halving.

    None where there is none, none that takes less than ``limit`` seconds, or where more effort comes no closer.

    >>> from benchmarks.tools.way import Fit, Way
    >>> way = Way("slow and steady", lambda effort, seed: Fit(effort, 0.0, effort / 10))
    >>> trials = Trials(way, lambda weights, intercept: (1 / weights, 0.5))
    >>> way.ladder[least_rung(trials, lambda outcome: outcome.objective - 0.03, limit=10)]
    40
    >>> least_rung(trials, lambda outcome: outcome.objective - 0.03, limit=3) is None
    True
    """
    top, failed, rung, stride = len(trials.way.ladder) - 1, -1, 0, 1
    closest, vain = math.inf, 0
    while (now := _worst(trials, rung, gap)) > 0:
        vain = 0 if now < CLOSER * closest else vain + 1
        closest = min(closest, now)
        ahead = _affordable(trials, rung, min(top, rung + stride), limit)
        if ahead == rung or vain == PATIENCE:
            return None
        failed, rung, stride = rung, ahead, stride * 2
    while rung - failed > 1:
        between = (rung + failed) // 2
        if _worst(trials, between, gap) > 0:
            failed = between
        else:
            rung = between
    return rung if trials.at(rung, SEEDS[0]).seconds <= limit else None


def _affordable(trials: Trials, rung: int, ahead: int, limit: float) -> int:
    """The highest rung up to ``ahead`` that should take no longer than ``limit``, if time grows with the effort."""
    ladder, seconds = trials.way.ladder, trials.at(rung, SEEDS[0]).seconds
    if seconds > limit:
        return rung
    while ahead > rung and seconds * ladder[ahead] / ladder[rung] > limit:
        ahead -= 1
    return ahead


def _worst(trials: Trials, rung: int, gap: Gap) -> float:
    """The gap of the first seed with which the target is missed, or of the last."""
    found = 0.0
    for seed in SEEDS:
        found = gap(trials.at(rung, seed))
        if not found <= 0:
            break
    return found
