"""On a GPU: every loss with every rule comes to the objective that one thread comes to (``make gpu``)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numba import cuda

from hogwild import (
    Cuda,
    FactorisationMachine,
    FieldAwareFactorisationMachine,
    GraphCut,
    Linear,
    MatrixCompletion,
    Serial,
    minimise,
)
from hogwild.losses import LOSSES
from hogwild.rules import COORDINATE_RULES

pytestmark = pytest.mark.skipif(not cuda.is_available(), reason="there is no GPU here")

ROWS, FEATURES, ENTRIES = 40_000, 2_000, 30
EPOCHS = 40
# Changes of rows in flight are limited by the largest curvature, and most rows have a small gradient instead.
SLOW = {"huber": 5 * EPOCHS}
RULES = sorted(set(COORDINATE_RULES) - {"sdca"})
TWO_CLASSES = {"hinge", "squared-hinge", "logistic", "modified-huber", "perceptron"}
NEAR = 1.001  # Largest ratio of objectives.
NEAR_OF_FACTORS = 1.002  # Objectives of factors have many minima.


@cache
def rows() -> tuple[Any, np.ndarray]:
    """Sparse rows whose features are as frequent as words, and scores with noise."""
    random = np.random.default_rng(0)
    columns = np.exp(random.random(ROWS * ENTRIES) * np.log(FEATURES)).astype(np.int32) - 1
    values = random.random(columns.size).astype(np.float32)
    X = sp.csr_matrix((values, columns, np.arange(0, columns.size + 1, ENTRIES)), (ROWS, FEATURES))
    X.sum_duplicates()
    X.data /= np.repeat(np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1])), np.diff(X.indptr))
    return X, X @ random.standard_normal(FEATURES) + 0.5 * random.standard_normal(ROWS)


def problem(loss: str) -> Linear:
    X, scores = rows()
    if loss == "softmax":
        labels = np.digitize(scores, np.quantile(scores, [0.25, 0.5, 0.75]))
    elif loss in TWO_CLASSES:
        labels = np.sign(scores)
    elif loss == "poisson":
        labels = np.random.default_rng(1).poisson(np.exp(0.5 * scores))
    else:
        labels = scores
    return Linear((X, labels), loss, l2=1e-4)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_linear_models(loss: str, rule: str) -> None:
    same = problem(loss)
    alone, gpu = (
        minimise(same, rule, budget=SLOW.get(loss, EPOCHS), **how)
        for how in ({"strategy": Serial()}, {"runtime": Cuda()})
    )
    assert gpu.objective / (alone.objective + 1e-6) <= NEAR


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", [FactorisationMachine, FieldAwareFactorisationMachine])
def test_factorisation_machines(kind: Any, rule: str) -> None:
    X, scores = rows()
    options = {"fields": np.arange(FEATURES) % 5} if kind is FieldAwareFactorisationMachine else {}
    same = kind((X, np.sign(scores)), rank=4, l2=1e-4, **options)
    alone, gpu = (minimise(same, rule, budget=EPOCHS, **how) for how in ({"strategy": Serial()}, {"runtime": Cuda()}))
    assert gpu.objective / alone.objective <= NEAR_OF_FACTORS


@pytest.mark.parametrize("rule", RULES)
def test_ratings(rule: str) -> None:
    random = np.random.default_rng(0)
    users, items = random.integers(0, 5_000, 500_000), random.integers(0, 800, 500_000)
    left, right = random.standard_normal((5_000, 3)), random.standard_normal((800, 3))
    ratings = (left[users] * right[items]).sum(axis=1) + 0.5 * random.standard_normal(users.size)
    same = MatrixCompletion((users, items, ratings), rank=8)
    alone, gpu = (minimise(same, rule, budget=20, **how) for how in ({"strategy": Serial()}, {"runtime": Cuda()}))
    assert gpu.objective / alone.objective <= NEAR


@pytest.mark.parametrize("rule", ["sgd", "adagrad"])
def test_cuts(rule: str) -> None:
    """Cuts of a square of nodes whose edges are light in the middle."""
    side = 60
    nodes = np.arange(side * side).reshape(side, side)
    one = np.concatenate([nodes[:, :-1].ravel(), nodes[:-1].ravel()])
    other = np.concatenate([nodes[:, 1:].ravel(), nodes[1:].ravel()])
    middle = (one % side == side // 2 - 1) & (other == one + 1)
    weights = np.where(middle, 0.3, 1.0) + 0.1 * np.random.default_rng(2).random(len(one))
    seeds = {int(node): 0 for node in nodes[:, 0]} | {int(node): 1 for node in nodes[:, -1]}
    same = GraphCut((one, other, weights), seeds)
    alone, gpu = (minimise(same, rule, budget=200, **how) for how in ({"strategy": Serial()}, {"runtime": Cuda()}))
    assert gpu.model.cut / alone.model.cut <= NEAR
