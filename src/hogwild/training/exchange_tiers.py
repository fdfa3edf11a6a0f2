"""Frequent features, whose changes are exchanged after every burst, and rare ones, which are exchanged less often.

With features numbered by frequency, the frequent ones are the first, and lie together in memory and in messages. A rare
feature is changed by few workers between two exchanges, and hardly differs between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hogwild.messaging.deltas import Floats
from hogwild.problems.problem import RowProblem
from hogwild.rules.rule import Rule
from hogwild.training.interval_progress import measurable_term

BLOCK = 64  # coordinates of one group of an exchanged vector
OFTEN = 0.5  # expected rows of a burst that have a feature, from which on the feature is frequent
# Largest part of an epoch whose changes of rare features a worker does not have yet: with rules whose steps shrink at
# once, and with other rules.
UNSEEN, UNSEEN_OF_SLOW_RULES = 1 / 4, 1 / 8
SCATTERED = 16  # features of a vector that are exchanged in the time of one feature that is exchanged with its index


@dataclass(frozen=True, slots=True)
class ExchangeTiers:
    """Number of frequent features, which may be all, and the rows of a worker between two exchanges of all."""

    frequent: int
    whole_every: int

    def is_whole(self, first: int, terms: int) -> bool:
        """Return whether all features are exchanged after a burst, or the frequent ones alone.

        ``first`` is the number of terms drawn from the shard before. A burst without terms exchanges all.

        >>> tiers = ExchangeTiers(63, 100)
        >>> tiers.is_whole(50, 49), tiers.is_whole(50, 50), tiers.is_whole(7, 0)
        (False, True, True)
        """
        return terms == 0 or first // self.whole_every != (first + terms) // self.whole_every

    def intervals(self, features: int, interval: int) -> Floats:
        """Return the number of rows between two exchanges of each feature."""
        return np.where(np.arange(features) < self.frequent, interval, self.whole_every)


def exchange_tiers(
    problem: RowProblem, rule: Rule, workers: int, interval: int, step: float | None = None
) -> ExchangeTiers | None:
    """Return the tiers for a number of rows between two exchanges; None where all features are exchanged alike.

    Exchanges of all features together take at most as long as those of the frequent ones, except that no worker lacks
    more than a part of an epoch. They are vectors, which pays unless few of the features occur in the rows of a burst.
    With a rule whose progress is not known it would be lost on rare features.
    """
    rates = problem.touch_rates()
    if rates is None or workers == 1 or (np.diff(rates[0]) > 0).any():
        return None
    if not rule.shrinks_at_once and (step is None or measurable_term(problem, rule) is None):
        return None
    features = len(rates[0])
    frequent = int(np.searchsorted(-rates[0], -OFTEN / interval, side="right"))
    groups = -(-(1 + frequent) // BLOCK) * BLOCK  # The intercepts are the first.
    unseen = UNSEEN if rule.shrinks_at_once else UNSEEN_OF_SLOW_RULES
    times = max(1, min(features // groups, int(unseen * problem.data.n_rows / (workers - 1)) // interval))
    touched = -np.expm1(-rates[0] * interval).sum()
    if features > SCATTERED * times * touched:
        return None
    return ExchangeTiers(features if times == 1 else groups - 1, times * interval)
