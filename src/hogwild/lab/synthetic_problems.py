"""Small problems with a known optimum, for experiments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

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
    problem = Linear((X[:rows], y[:rows]), "squared", intercept=False)
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


def _logistic_optimum(X: Array, y: Array, l2: float) -> float:
    def objective(w: Array) -> tuple[float, Array]:
        margins = y * (X @ w)
        slopes = -y / (1 + np.exp(margins))
        loss = float(np.logaddexp(0, -margins).mean() + l2 / 2 * w @ w)
        return loss, X.T @ slopes / len(y) + l2 * w

    found = minimize(objective, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options={"ftol": 1e-14})
    return float(found.fun)


def _unit(X: Array) -> Array:
    unit: Array = X / np.linalg.norm(X, axis=1, keepdims=True)
    return unit
