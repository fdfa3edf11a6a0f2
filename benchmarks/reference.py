"""A good model to set the first target by. If a tool finds a better one, that one sets it."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from benchmarks.sets import Split


def reference(split: Split, loss: str) -> tuple[Any, float]:
    """Weights and intercept by a solver of scikit-learn that is given time."""
    strength = 1 / (split.l2 * len(split.y))
    if loss == "hinge":
        model = LinearSVC(loss="hinge", dual=True, C=strength, tol=1e-3, max_iter=100, random_state=0)
    else:
        model = LogisticRegression(C=strength, tol=1e-6, max_iter=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(split.X, split.y)
    return model.coef_.ravel(), float(model.intercept_[0])
