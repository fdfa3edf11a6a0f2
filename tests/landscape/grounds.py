"""Small problems whose Hessians are written down in full."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from hogwild import Linear

ROWS, FEATURES = 60, 5


def rows(seed: int = 0) -> tuple[Any, Any]:
    """Rows that float32 holds exactly, and a number for each."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-16, 17, (ROWS, FEATURES)) / 8.0
    X[rng.random(X.shape) < 0.3] = 0.0
    return X, rng.integers(-16, 17, ROWS) / 8.0


def linear(loss: str, *, sparse: bool = False, classes: int = 2, weighted: bool = False, **options: Any) -> Linear:
    X, numbers = rows()
    name = loss.partition(":")[0]
    if name == "poisson":
        y = np.abs(np.round(numbers))
    elif name in ("squared", "huber", "squared-epsilon-insensitive", "quantile", "epsilon-insensitive"):
        y = numbers
    else:
        y = np.arange(ROWS) % classes
    given = scipy.sparse.csr_matrix(X) if sparse else X
    weights = (np.arange(ROWS) % 4 + 1) / 2
    return Linear((given, y, weights) if weighted else (given, y), loss, **options)


def hessian(problem: Linear, vector: Any, weights: Any = None) -> Any:
    """That of a logistic, squared or softmax problem: weights feature by feature, then intercepts."""
    X, _ = rows()
    n, outputs = len(X), problem.n_outputs
    table = np.hstack([X, np.ones((n, 1))]) if problem.intercept else X
    z = table @ vector.reshape(-1, outputs)
    each = np.ones(n) if weights is None else weights
    if problem.loss.name == "squared":
        bent = np.ones((n, 1, 1))
    elif problem.loss.name == "logistic" and outputs == 1:
        p = 1 / (1 + np.exp(-z[:, 0]))
        bent = (p * (1 - p))[:, None, None]
    elif problem.loss.name == "logistic":
        p = 1 / (1 + np.exp(-z))
        bent = np.einsum("ik,kl->ikl", p * (1 - p), np.eye(outputs))
    else:
        p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        bent = np.einsum("ik,kl->ikl", p, np.eye(outputs)) - np.einsum("ik,il->ikl", p, p)
    full = np.einsum("i,ia,ib,ikl->akbl", each, table, table, bent) / n
    found = full.reshape(table.shape[1] * outputs, -1)
    found[: FEATURES * outputs, : FEATURES * outputs] += problem.l2 * np.eye(FEATURES * outputs)
    return found


def numerical(function: Any, vector: Any, h: float = 1e-5) -> Any:
    """The derivatives of a function by each coordinate, from differences."""
    moves = h * np.eye(len(vector))
    return np.array([(function(vector + move) - function(vector - move)) / (2 * h) for move in moves])
