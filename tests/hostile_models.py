"""One small model of each kind, for tests that damage their files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

import hogwild
from hogwild.models.factorisation_machine import FactorisationModel
from hogwild.models.graph_cut import GraphCutModel
from hogwild.models.linear import LinearModel

SINGLE = np.float32


def _linear(path: Path) -> None:
    weights = np.array([[0.5], [-1.0], [2.0]], SINGLE)
    LinearModel(weights, np.zeros(1, SINGLE), "logistic", (0.0, 1.0), "sigmoid", {"base": 1, "bits": 4}).save(path)


def _three_classes(path: Path) -> None:
    LinearModel(np.eye(3, dtype=SINGLE), np.zeros(3, SINGLE), "softmax", (1.0, 2.0, 3.0), "sigmoid", {}).save(path)


def _fm(path: Path) -> None:
    weights, factors = np.ones(3, SINGLE), np.ones((3, 1, 2), SINGLE)
    FactorisationModel(weights, np.zeros(1, SINGLE), factors, "logistic", (0.0, 1.0), "sigmoid", False).save(path)


def _ffm(path: Path) -> None:
    weights, factors, fields = np.ones(3, SINGLE), np.ones((3, 2, 2), SINGLE), np.array([0, 1, 1], np.uint32)
    keys = np.array([1, 2**32 + 2, 2**32 + 3], np.uint64)
    FactorisationModel(
        weights, np.zeros(1, SINGLE), factors, "logistic", (0.0, 1.0), "sigmoid", True, fields, keys
    ).save(path)


def _ratings(path: Path) -> None:
    problem = hogwild.MatrixCompletion((["ann", "bob", "ann"], [7, 7, 8], [5.0, 3.0, 4.0]), rank=2)
    hogwild.minimise(problem, budget=hogwild.Budget(epochs=1)).model.save(path)


def _graph_cut(path: Path) -> None:
    shares = np.array([[1.0, 0.0], [0.0, 1.0]], SINGLE)
    GraphCutModel(shares, np.array([0, 1]), 1.0, ("ann", "bob")).save(path)


def _sparse_mlp(path: Path) -> None:
    from hogwild.models.sparse_mlp import SparseMLPModel
    from hogwild.nn.sparse_mlp import SparseMLP

    SparseMLPModel(SparseMLP(5, [3, 2], 2, False), (0.0, 1.0), {}).save(path)


MODELS: dict[str, Callable[[Path], None]] = {
    "linear": _linear,
    "three classes": _three_classes,
    "fm": _fm,
    "ffm": _ffm,
    "ratings": _ratings,
    "graph-cut": _graph_cut,
    "sparse-mlp": _sparse_mlp,
}
# A file that each kind of model can answer.
QUESTIONS = {
    "linear": b"1 1:1 2:0.5\n0 3:1\n",
    "three classes": b"1 1:1 2:0.5\n2 3:1\n",
    "fm": b"1 1:1 2:0.5\n0 3:1\n",
    "ffm": b"1 0:1:1 1:2:0.5\n0 1:3:1\n",
    "ratings": b"ann,7,5\nbob,8,3\ncid,9,1\n",
    "graph-cut": b"ann\nbob\n",
    "sparse-mlp": b"1 1:1 2:0.5\n0 3:1\n",
}
ENDINGS = {"ffm": ".ffm", "ratings": ".csv", "graph-cut": ".txt"}
