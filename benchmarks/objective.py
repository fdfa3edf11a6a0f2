"""One judge for all: the objective that everyone is asked to minimise, and held-out accuracy, in double precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.sets import Split

LOSSES = {
    "logistic": lambda margins: np.logaddexp(0, -margins),
    "hinge": lambda margins: np.maximum(0, 1 - margins),
}


@dataclass(frozen=True, eq=False)
class Judge:
    """Judges models of one set by one loss: mean loss + l2/2 |w|^2, the intercept not penalised.

    >>> import numpy as np
    >>> from pathlib import Path
    >>> X, y = np.eye(2, dtype=np.float32), np.array([1.0, -1.0])
    >>> split = Split("two rows", 0.5, X, y, (X, y), Path(), Path(), None, 0.0)
    >>> Judge(split, "hinge")(np.array([1.0, 0.0]), 0.0)
    (0.75, 1.0)
    """

    split: Split
    loss: str

    def __call__(self, weights: Any, intercept: float) -> tuple[float, float]:
        """The objective on the training rows, and the accuracy on those held out."""
        split, w = self.split, np.asarray(weights, np.float64)
        margins = split.y * (split.X @ w + intercept)
        objective = LOSSES[self.loss](margins).mean() + split.l2 / 2 * (w @ w)
        X, y = split.held_out
        guessed = np.where(X @ w + intercept > 0, 1, -1)
        return float(objective), float(np.mean(guessed == y))
