"""The divergence guard: notices an exploding loss, goes back, and takes smaller steps."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hogwild.errors import DivergedError

DIVERGENCE_FACTOR = 1e3  # times the loss at the start
MOST = 5  # halvings before a run gives up


@dataclass(slots=True)
class DivergenceGuard:
    """Judges losses against the loss at the start, and counts how often the step was halved.

    >>> guard = DivergenceGuard(start=0.7)
    >>> guard.has_diverged(0.5), guard.has_diverged(float("nan")), guard.has_diverged(1e9)
    (False, True, True)
    """

    start: float
    halvings: int = 0
    factor: float = DIVERGENCE_FACTOR  # how many times the loss at the start counts as diverged

    def has_diverged(self, *losses: float) -> bool:
        """Whether any of these losses is not a number or absurdly large."""
        limit = self.factor * max(self.start, 1.0)
        return not all(math.isfinite(loss) and loss <= limit for loss in losses)

    def halve(self) -> float:
        """Halve the step, and return what is left of it; after five times there is no use in going on."""
        if self.halvings == MOST:
            raise DivergedError(
                f"The loss exploded {MOST + 1} times, the last time with {2.0**-MOST:.3g} of the step. "
                "Give a smaller step (or step='auto'), scale the features to similar sizes, or look for outliers "
                "among the labels."
            )
        self.halvings += 1
        return self.scale

    @property
    def scale(self) -> float:
        """What is left of the step."""
        return 2.0**-self.halvings


def all_finite(parts: Iterable[Any]) -> bool:
    """Whether no parameter is infinite or NaN. The loss does not always tell: a hinge takes NaN for a good margin.

    >>> all_finite([np.ones(3), np.zeros((2, 1))]), all_finite([np.array([1.0, np.nan])])
    (True, False)
    """
    return all(bool(np.isfinite(part).all()) for part in parts)
