"""The rule Sequential, step by step, against the same steps in plain NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp

from hogwild import Budget, Constant, Hogwild, Linear, minimise
from hogwild.data import InMemoryDataset
from hogwild.data import open as open_data
from hogwild.errors import ParameterError
from hogwild.rules import Sequential

ROWS, FEATURES, STEP, EPOCHS = 120, 20, 0.1, 3
RNG = np.random.default_rng(0)
MATRIX = RNG.standard_normal((ROWS, FEATURES)) * (RNG.random((ROWS, FEATURES)) < 0.3)
LABELS = np.where(MATRIX @ RNG.standard_normal(FEATURES) + 0.3 * RNG.standard_normal(ROWS) > 0, 1.0, -1.0)


def reference(l1, l2, averaged_from):
    """Every weight is pulled at every step; L1 by what a weight owes when it is touched.

    The last iterate, their mean from one of them on, and the mean objective of each epoch as it was met on the way.
    """
    met = []
    w, paid, b, owed = np.zeros(FEATURES), np.zeros(FEATURES), 0.0, 0.0
    mean, mean_b, steps = np.zeros(FEATURES), 0.0, 0
    for _ in range(EPOCHS):
        met.append(0.0)
        for x, y in zip(MATRIX, LABELS, strict=True):
            met[-1] += np.logaddexp(0, -y * (w @ x + b)) / ROWS
            slope = -y / (1 + np.exp(y * (w @ x + b)))
            w = w * (1 - STEP * l2) - STEP * slope * x
            b -= STEP * slope
            owed += STEP * l1
            touched = x != 0
            due = np.where(w > 0, owed + paid, owed - paid)
            after = np.where(touched, np.sign(w) * np.maximum(0, np.abs(w) - due), w)
            paid, w = paid + (after - w), after
            steps += 1
            averaged = steps - averaged_from + 1
            if averaged > 0:
                mean, mean_b = mean + (w - mean) / averaged, mean_b + (b - mean_b) / averaged
    return (w, b), (mean, mean_b), met


@pytest.mark.parametrize("chunk", [ROWS, 32])
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.0, 0.02), (0.005, 0.0), (0.005, 0.02), (0.0, 9.99999)])
@pytest.mark.parametrize(("precision", "averages"), [("float32", 0), ("float64", 0), ("float64", 1), ("float64", 170)])
def test_it_follows_the_textbook(precision, l1, l2, averages, chunk):
    data = InMemoryDataset(open_data(sp.csr_array(MATRIX.astype(precision)), LABELS).rows, shuffled=False, chunk=chunk)
    rule = Sequential(average_from=averages, precision=precision)
    run = minimise(Linear(data, "logistic", l1=l1, l2=l2), rule, Constant(STEP), "serial", budget=EPOCHS, shuffle=False)
    w, b = reference(l1, l2, averages)[1 if averages else 0]
    close = {"rtol": 1e-8, "atol": 1e-12} if precision == "float64" else {"rtol": 2e-3, "atol": 2e-5}
    assert run.model.weights.dtype == precision
    np.testing.assert_allclose(run.model.weights.ravel(), w, **close)
    np.testing.assert_allclose(run.model.intercept, b, **close)


def test_a_run_may_watch_what_it_meets():
    """It ends after the first epoch in which the objective met no longer fell by the tolerance."""
    met = reference(0.0, 0.0, 0)[2]
    falls = -np.diff(met)
    assert falls[0] > falls[1]
    run = minimise(
        Linear((MATRIX, LABELS)), Sequential(precision="float64", track_objective=True), Constant(STEP), "serial",
        budget=Budget(epochs=50, tolerance=float(falls.mean()), stall_epochs=1, monitor="training_objective"),
        shuffle=False, evaluate_every_epoch=False,
    )  # fmt: skip
    assert (run.stop_reason, run.history[-1]["epoch"]) == ("tolerance", 3)


def test_it_refuses_what_it_cannot_do():
    problem = Linear((MATRIX, LABELS), "logistic", l1=0.1)
    with pytest.raises(ParameterError, match="one worker and one output"):
        minimise(problem, Sequential(), Constant(STEP), Hogwild(2), budget=1)
    with pytest.raises(ParameterError, match="float64"):
        Sequential(average_from=1)
    with pytest.raises(ParameterError, match="averages by itself"):
        minimise(
            problem, Sequential(average_from=1, precision="float64"), Constant(STEP), "serial", budget=1, average=0.5
        )
    watching = Budget(epochs=1, tolerance=0.1, monitor="training_objective")
    with pytest.raises(ParameterError, match="track_objective=True"):
        minimise(problem, Sequential(), Constant(STEP), "serial", budget=watching)
    with pytest.raises(ParameterError, match="l1=True"):
        minimise(problem, Sequential(l1=False), Constant(STEP), "serial", budget=1)
    with pytest.raises(ParameterError, match="one worker and one output"):
        minimise(Linear((MATRIX, np.arange(ROWS) % 3)), Sequential(), Constant(STEP), "serial", budget=1)


def test_a_model_in_double_precision_is_saved_in_single(tmp_path):
    from hogwild import load

    run = minimise(Linear((MATRIX, LABELS)), Sequential(precision="float64"), Constant(STEP), "serial", budget=1)
    run.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").weights, run.model.weights.astype(np.float32))
