"""Small problems with a known optimum, for experiments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize

from hogwild.problems.linear import Linear

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Planted:
    """Problem with planted weights: training rows, held-out rows, and the optimal objective."""

    problem: Linear
    test: tuple[Array, Array]
    weights: Array
    best: float
    start: float  # objective with all weights at zero

    def excess(self, objective: float) -> float:
        """Return the relative excess of an objective: 0 at the optimum, 1 at the start, at most a million."""
        share = (objective - self.best) / (self.start - self.best)
        return float(min(max(share, 1e-12), 1e6)) if np.isfinite(share) else 1e6


@lru_cache(maxsize=4)
def regression(seed: int, rows: int = 600, features: int = 8, noise: float = 0.1) -> Planted:
    """Make a linear function with noise.

    Rows have length one, so that a single worker is stable for step sizes below two.
    """
    random = np.random.default_rng(seed)
    X = _unit(random.standard_normal((2 * rows, features)))
    weights = random.standard_normal(features) * 2
    y = X @ weights + noise * random.standard_normal(2 * rows)
    problem = Linear((X[:rows], y[:rows]), "squared", l2=0.0, intercept=False)
    found = np.linalg.lstsq(X[:rows], y[:rows], rcond=None)[0]
    best = 0.5 * float(np.mean((X[:rows] @ found - y[:rows]) ** 2))
    return Planted(problem, (X[rows:], y[rows:]), weights, best, 0.5 * float(np.mean(y[:rows] ** 2)))


@lru_cache(maxsize=4)
def classification(seed: int, rows: int = 1000, features: int = 20, l2: float = 1e-2) -> Planted:
    """Make two classes on either side of a planted plane, with logistic label noise; the loss is logistic."""
    random = np.random.default_rng(seed)
    X = _unit(random.standard_normal((2 * rows, features)))
    weights = random.standard_normal(features) * 4
    y = np.where(X @ weights + random.logistic(size=2 * rows) > 0, 1.0, -1.0)
    problem = Linear((X[:rows], y[:rows]), "logistic", l2=l2, intercept=False)
    best = _logistic_optimum(X[:rows], y[:rows], l2)
    return Planted(problem, (X[rows:], y[rows:]), weights, best, float(np.log(2)))


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """Rows drawn from a known distribution, whose best weights are planted, and fresh rows without labels.

    The mean squared length of a row is one.
    """

    loss: str  # squared or logistic
    X: Array
    y: Array
    weights: Array
    fresh: Array

    def problem(self, rows: int) -> Linear:
        """Return the problem of the first ``rows`` rows."""
        return Linear((self.X[:rows], self.y[:rows]), self.loss, l2=0.0, intercept=False)

    def excess(self, weights: Array) -> float:
        """Return the expected loss above that of the planted weights, over fresh rows and exactly over their labels."""
        found, best = self.fresh @ np.ravel(weights).astype(float), self.fresh @ self.weights
        if self.loss == "squared":
            return 0.5 * float(np.mean((found - best) ** 2))
        # The mean over labels of the logistic loss is log(1 + exp(z)) - z P(y = 1).
        share = 1 / (1 + np.exp(-best))
        return float(np.mean(np.logaddexp(0, found) - np.logaddexp(0, best) - share * (found - best)))

    def attainable(self, rows: int) -> float:
        """Return the excess of the exact minimiser of the first ``rows`` rows, to which many passes converge."""
        X, y = self.X[:rows], self.y[:rows]
        found = np.linalg.lstsq(X, y, rcond=None)[0] if self.loss == "squared" else _logistic_minimum(X, y, 0.0).x
        return self.excess(found)


@lru_cache(maxsize=4)
def population(
    seed: int, loss: str = "squared", rows: int = 2000, features: int = 20, decay: float = 0.0, noise: float = 0.5
) -> Population:
    """Draw rows whose k-th feature has a variance proportional to ``k ** -decay``, and labels of planted weights.

    >>> made = population(0, rows=100)
    >>> made.excess(made.weights), 0 < made.attainable(100) < made.excess(0 * made.weights)
    (0.0, True)
    """
    random = np.random.default_rng(seed)
    variances = np.arange(1, features + 1) ** -float(decay)
    scale = np.sqrt(variances / variances.sum())
    X, fresh = (random.standard_normal((count, features)) * scale for count in (rows, 5000))
    weights = random.standard_normal(features) * (2.0 if loss == "squared" else 4.0)
    if loss == "squared":
        y = X @ weights + noise * random.standard_normal(rows)
    else:
        y = np.where(X @ weights + random.logistic(size=rows) > 0, 1.0, -1.0)
    return Population(loss, X, y, weights, fresh)


def _logistic_optimum(X: Array, y: Array, l2: float) -> float:
    return float(_logistic_minimum(X, y, l2).fun)


def _logistic_minimum(X: Array, y: Array, l2: float) -> OptimizeResult:
    def objective(w: Array) -> tuple[float, Array]:
        margins = y * (X @ w)
        slopes = -y / (1 + np.exp(margins))
        loss = float(np.logaddexp(0, -margins).mean() + l2 / 2 * w @ w)
        return loss, X.T @ slopes / len(y) + l2 * w

    return minimize(objective, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options={"ftol": 1e-14})


def _unit(X: Array) -> Array:
    unit: Array = X / np.linalg.norm(X, axis=1, keepdims=True)
    return unit
