"""Divergence guard: detects an exploding loss, returns to the last good parameters, and halves the step size."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hogwild.errors import DivergedError

# Multiple of the initial loss (or of 1, if that is larger) above which a loss counts as diverged.
DIVERGENCE_FACTOR = 1e3
MOST = 5  # number of halvings of the step size after which a run fails


@dataclass(slots=True)
class DivergenceGuard:
    """Guard that compares losses with the initial loss, and counts the halvings of the step size.

    >>> guard = DivergenceGuard(start=0.7)
    >>> guard.has_diverged(0.5), guard.has_diverged(float("nan")), guard.has_diverged(1e9)
    (False, True, True)
    """

    start: float
    halvings: int = 0
    factor: float = DIVERGENCE_FACTOR  # multiple of the initial loss that counts as diverged

    def has_diverged(self, *losses: float) -> bool:
        """Return whether any loss is not finite, or above ``factor`` times the initial loss (or 1, if larger)."""
        limit = self.factor * max(self.start, 1.0)
        return not all(math.isfinite(loss) and loss <= limit for loss in losses)

    def halve(self) -> float:
        """Halve the step size, and return the remaining factor.

        Raises
        ------
        DivergedError
            After five halvings, because further ones would not help.
        """
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
        """The factor of the step size after all halvings."""
        return 2.0**-self.halvings


def all_finite(parts: Iterable[Any]) -> bool:
    """Return whether all parameters are finite.

    The loss alone does not show NaN parameters: the hinge loss takes a NaN margin for a good one, with loss 0.

    >>> all_finite([np.ones(3), np.zeros((2, 1))]), all_finite([np.array([1.0, np.nan])])
    (True, False)
    """
    return all(bool(np.isfinite(part).all()) for part in parts)
