"""scikit-learn's SGDClassifier: the schedules it has, with and without averaging."""

from __future__ import annotations

from functools import partial
from typing import Any

from sklearn.linear_model import SGDClassifier

from benchmarks.sets import Split
from benchmarks.tools.way import Fit, Tool, Way, timed

LOSSES = {"logistic": "log_loss", "hinge": "hinge"}
SETTINGS: dict[str, dict[str, Any]] = {
    "optimal": {},
    "optimal, averaged": {"average": True},
    "invscaling from 1": {"learning_rate": "invscaling", "eta0": 1.0, "power_t": 0.25},
    "constant 0.1, averaged": {"learning_rate": "constant", "eta0": 0.1, "average": True},
    "constant 1, averaged": {"learning_rate": "constant", "eta0": 1.0, "average": True},
}


def fit(split: Split, loss: str, settings: dict[str, Any], epochs: float, seed: int) -> Fit:
    model = SGDClassifier(
        LOSSES[loss], alpha=split.l2, max_iter=int(epochs), tol=None, random_state=seed, **settings
    )  # fmt: skip
    _, seconds = timed(lambda: model.fit(split.X, split.y))
    return Fit(model.coef_.ravel(), float(model.intercept_[0]), seconds)


def ways(_: Any, split: Split, loss: str) -> list[Way]:
    return [Way(name, partial(fit, split, loss, settings)) for name, settings in SETTINGS.items()]


TOOLS = [Tool("scikit-learn SGDClassifier", "scikit-learn", lambda split: None, ways)]
