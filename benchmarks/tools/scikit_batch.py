"""scikit-learn's LogisticRegression and LinearSVC."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from benchmarks.sets import Split
from benchmarks.tools.way import Fit, Tool, Way, timed

SOLVERS = ("lbfgs", "newton-cg", "saga")
FEW_FEATURES = 1_000  # newton-cholesky makes a matrix of all pairs of features


def model_of(split: Split, loss: str, solver: str, iterations: float, seed: int) -> Any:
    strength = {"C": 1 / (split.l2 * len(split.y)), "max_iter": int(iterations), "random_state": seed}
    if loss == "hinge":
        return LinearSVC(loss="hinge", dual=True, tol=1e-12, **strength)
    return LogisticRegression(solver=solver, tol=1e-12, **strength)


def fit(split: Split, loss: str, solver: str, iterations: float, seed: int) -> Fit:
    model = model_of(split, loss, solver, iterations, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is stopped early, and driven on too long, on purpose
        _, seconds = timed(lambda: model.fit(split.X, split.y))
    return Fit(model.coef_.ravel(), float(model.intercept_[0]), seconds)


def ways(_: Any, split: Split, loss: str) -> list[Way]:
    if loss == "hinge":
        return [Way("LinearSVC, dual", partial(fit, split, loss, ""), effort="iterations")]
    solvers = (*SOLVERS, "newton-cholesky") if split.X.shape[1] <= FEW_FEATURES else SOLVERS
    return [Way(f"LogisticRegression, {s}", partial(fit, split, loss, s), effort="iterations") for s in solvers]


TOOLS = [Tool("scikit-learn LogisticRegression, LinearSVC", "scikit-learn", lambda split: None, ways)]
