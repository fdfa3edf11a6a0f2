"""Run with NUMBA_ENABLE_CUDASIM=1: factorisation machines by the kernels for a GPU, on its simulator."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import config

from hogwild import Cuda, FactorisationMachine, FieldAwareFactorisationMachine, Serial, minimise
from hogwild.data import open as open_data
from hogwild.kernels import cuda_device
from hogwild.rules import COORDINATE_RULES

ROWS, FEATURES, ENTRIES = 40, 12, 4
RULES = tuple(sorted(set(COORDINATE_RULES) - {"sdca"}))


def rows_of(layout: str) -> tuple[Any, Any]:
    random = np.random.default_rng(3)
    columns = (FEATURES * random.random((ROWS, ENTRIES)) ** 2).astype(np.int32)
    values = np.ones(columns.size) if layout == "binary" else random.random(columns.size) + 0.5
    X = sp.csr_matrix((values.astype(np.float32), columns.ravel(), np.arange(0, columns.size + 1, ENTRIES)))
    X.resize((ROWS, FEATURES))
    X.sum_duplicates()
    if layout == "binary":
        X.data[:] = 1
    factors = random.standard_normal((FEATURES, 2))
    scores = X @ random.standard_normal(FEATURES) + ((X @ factors) ** 2 - X.power(2) @ factors**2).sum(axis=1) / 2
    y = np.sign(scores - np.median(scores) + 0.1)
    return (X.toarray() if layout == "dense" else X), y


def fm(source: object, loss: str = "logistic", **given: Any) -> Any:
    return FactorisationMachine(source, loss, **{"rank": 3, "l2": 1e-2, "l2_factors": 1e-2} | given)


def ffm(source: object, loss: str = "logistic", **given: Any) -> Any:
    # Each feature has a field of its own, so that the order of pairs does not matter.
    given = {"rank": 3, "l2": 1e-2, "l2_factors": 1e-3, "normalise": False, "fields": np.arange(FEATURES)} | given
    return FieldAwareFactorisationMachine(source, loss, **given)


def both(problem: Any, rule: str, epochs: int, schedule: Any) -> tuple[float, float]:
    alone = minimise(problem, rule, strategy=Serial(), budget=epochs, schedule=schedule, shuffle=False)
    gpu = minimise(problem, rule, runtime=Cuda(), budget=epochs, schedule=schedule, shuffle=False)
    assert gpu.history[-1]["updates"] == epochs * ROWS
    return gpu.objective, alone.objective


@contextmanager
def one_row_in_flight() -> Iterator[None]:
    before, cuda_device.SIMULATED = cuda_device.SIMULATED, (1, 1)
    try:
        yield
    finally:
        cuda_device.SIMULATED = before


def check_updates(make: Any) -> None:
    """With one row in flight and a small step, updates are those of the processor."""
    X, y = rows_of("sparse")
    numbers = X @ np.arange(FEATURES) / FEATURES
    weighted = open_data(X, y, np.where(np.arange(ROWS) % 2, 1.5, 0.5))
    cases = [(rule, (X, y), "logistic", {}) for rule in RULES]
    cases += [
        ("adagrad", (X, y), "logistic", {"l2": 0.0, "l2_factors": 0.0}),
        ("sgd", (X, y), "hinge", {"rank": 9}),
        ("sgd", (X, y), "squared-hinge", {}),
        ("ftrl", (X, numbers), "squared", {}),
        ("sgd", (X, numbers), "huber", {}),
        ("sgd", (X, np.round(numbers)), "poisson", {}),
        ("adagrad", rows_of("binary"), "logistic", {"normalise": True}),
        ("adam", rows_of("dense"), "logistic", {"normalise": True}),
        ("ftrl", weighted, "logistic", {"class_weight": {-1: 1.2, 1: 0.5}}),
    ]
    with one_row_in_flight():
        for rule, source, loss, given in cases:
            gpu, alone = both(make(source, loss, intercept=False, **given), rule, 1, 0.01)
            np.testing.assert_allclose(gpu, alone, rtol=1e-5, err_msg=f"{make.__name__} {rule} {loss} {given}")


def check_objectives(make: Any) -> None:
    """With several rows in flight, and an intercept, objectives are close to those of the processor.

    Not very close: those in flight are a large part of the rows.
    """
    given = {} if make is fm else {"fields": np.arange(FEATURES) % 3}  # Most rows have several features of a field.
    for rule in RULES:
        gpu, alone = both(make(rows_of("sparse"), **given), rule, 12, 0.1 if rule in ("adagrad", "ftrl") else 0.02)
        assert gpu < 1.1 * alone, (make.__name__, rule, gpu, alone)


def check_evaluation(make: Any) -> None:
    """The figures of a record are those of the model."""
    X, y = rows_of("sparse")
    run = minimise(make((X, y)), runtime=Cuda(), budget=2, test=(X[:20], y[:20]), average=0.5)
    scores = np.asarray(run.model.decide(X)).ravel()
    assert run.result["accuracy"] == np.mean((scores > 0) == (y > 0))
    np.testing.assert_allclose(run.result["loss"], np.logaddexp(0, -scores * y).mean(), rtol=1e-5)
    np.testing.assert_allclose(run.result["test_loss"], np.logaddexp(0, -scores * y)[:20].mean(), rtol=1e-5)


if __name__ == "__main__":
    assert config.ENABLE_CUDASIM
    for name in sys.argv[1:]:
        check_updates(globals()[name])
        check_objectives(globals()[name])
        check_evaluation(globals()[name])
