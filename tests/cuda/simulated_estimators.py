"""Estimators with ``device="cuda"`` in Numba's simulator; run by ``test_cuda.py`` in a process of its own."""

import numpy as np
from simulated_linear import FEATURES, ROWS, rows_of

from hogwild import HogwildClassifier, HogwildOneClassSVM, HogwildRegressor

X, y = rows_of("sparse")


def check_classifier() -> None:
    for own in ({}, {"loss": "log_loss", "rule": "adagrad"}, {"average": True}, {"early_stopping": True}):
        given = {"alpha": 1e-2, "max_iter": 12, "random_state": 0, **own}
        here = HogwildClassifier(**given).fit(X, y)
        there = HogwildClassifier(**given, device="cuda").fit(X, y)
        assert there.score(X, y) > here.score(X, y) - 0.05, (own, there.score(X, y), here.score(X, y))


def check_classes() -> None:
    classes = np.argmax(X @ np.random.default_rng(2).standard_normal((FEATURES, 4)), axis=1)
    here = HogwildClassifier("log_loss", alpha=1e-2, max_iter=12, random_state=0).fit(X, classes)
    there = HogwildClassifier("log_loss", alpha=1e-2, max_iter=12, random_state=0, device="cuda").fit(X, classes)
    assert there.coef_.shape == (4, FEATURES)
    assert there.score(X, classes) > here.score(X, classes) - 0.05
    there.partial_fit(X, classes)
    assert there.t_ > ROWS * (there.n_iter_ + 1)


def check_regressor() -> None:
    numbers = np.asarray(X @ np.arange(FEATURES) / FEATURES)
    here, there = (
        HogwildRegressor(alpha=1e-3, max_iter=30, eta0=0.1, random_state=0, device=device).fit(X, numbers)
        for device in ("cpu", "cuda")
    )
    assert there.score(X, numbers) > here.score(X, numbers) - 0.05


def check_one_class() -> None:
    here, there = (HogwildOneClassSVM(max_iter=20, random_state=0, device=device).fit(X) for device in ("cpu", "cuda"))
    assert np.mean(here.predict(X) == there.predict(X)) > 0.9


if __name__ == "__main__":
    check_classifier()
    check_classes()
    check_regressor()
    check_one_class()
