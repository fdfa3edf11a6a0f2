"""Run with NUMBA_ENABLE_CUDASIM=1: one short run of each problem that has kernels for a GPU, on its simulator."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numba import config
from simulated_linear import FEATURES, check_averaging, check_evaluation, check_snapshots, check_streams, rows_of

from hogwild import (
    Cuda,
    FactorisationMachine,
    FieldAwareFactorisationMachine,
    GraphCut,
    HogwildClassifier,
    Linear,
    MatrixCompletion,
    Serial,
    minimise,
)
from hogwild.kernels.cuda_device import copy_anew
from hogwild.rules import named

X, y = rows_of("sparse")
random = np.random.default_rng(0)
RATINGS = random.integers(0, 8, 60), random.integers(0, 6, 60), random.integers(1, 6, 60).astype(float)
EDGES = np.array([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 5), (3, 5)])
PREFERENCES = MatrixCompletion(RATINGS[:2], 4, loss="bpr")
PROBLEMS = (
    Linear((X, y), l2=1e-2),
    Linear((X, np.arange(len(y)) % 3), "softmax", l2=1e-2),
    FactorisationMachine((X, y), rank=2),
    FieldAwareFactorisationMachine((X, y), rank=2, fields=np.arange(FEATURES) % 3),
    MatrixCompletion(RATINGS, 4),
    PREFERENCES,
    GraphCut((EDGES[:, 0], EDGES[:, 1], np.ones(len(EDGES))), {0: 0, 5: 1}),
)


def check_penalties() -> None:
    """Penalties on the GPU are those of the host, and not finite where a parameter is not."""
    rule = named("adagrad")
    for problem in PROBLEMS[:-1]:
        gpu = problem.on_gpu(rule)
        state = tuple(np.asarray(part, order=gpu.host_order) for part in problem.start(rule))
        values = rule.values(state)
        values[0][:3] += 0.5  # Rows of factors end with numbers that have no meaning.
        expected = problem.penalty(values)
        assert expected > 0
        np.testing.assert_allclose(gpu.penalty(gpu.put(state, copy_anew), copy_anew), expected, 1e-5)
        values[-1][0] = np.nan
        assert not np.isfinite(gpu.penalty(gpu.put(state, copy_anew), copy_anew))


if __name__ == "__main__":
    assert config.ENABLE_CUDASIM
    for problem in PROBLEMS:
        epochs = 6 if problem is PREFERENCES else 3  # After three, chance decides on those of so few ratings.
        gpu = minimise(problem, "adagrad", runtime=Cuda(), budget=epochs)
        alone = minimise(problem, "adagrad", strategy=Serial(), budget=epochs)
        assert gpu.history[-1]["updates"] == alone.history[-1]["updates"]
        assert gpu.objective < 1.25 * abs(alone.objective), (problem, gpu.objective, alone.objective)
    first, second = (
        minimise(PROBLEMS[0], "adagrad", strategy="synchronous", runtime=Cuda(), budget=2) for _ in range(2)
    )
    assert (first.model.weights == second.model.weights).all()
    check_averaging(("adagrad",))
    check_penalties()
    check_evaluation()
    check_snapshots()
    check_streams(Path(sys.argv[1]))
    assert HogwildClassifier(max_iter=3, tol=None, device="cuda", random_state=0).fit(X, y).score(X, y) > 0.6
