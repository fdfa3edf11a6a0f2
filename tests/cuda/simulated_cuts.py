"""Run with NUMBA_ENABLE_CUDASIM=1: graph cuts by the kernels for a GPU, on its simulator, against one thread."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import config

from hogwild import Cosine, Cuda, GraphCut, Serial, minimise
from hogwild.errors import ParameterError

SIDE = 4
STEPS = {"sgd": 0.1, "momentum": 0.03, "adagrad": 0.2, "ftrl": 0.3, "adam": 0.05}


def grid() -> tuple[Any, Any, Any]:
    """Edges of a square of nodes, lighter in the middle."""
    nodes = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    one = np.concatenate([nodes[:, :-1].ravel(), nodes[:-1].ravel()])
    other = np.concatenate([nodes[:, 1:].ravel(), nodes[1:].ravel()])
    middle = (one % SIDE == SIDE // 2 - 1) & (other == one + 1)
    return one, other, np.where(middle, 0.3, 1.0) + 0.1 * np.random.default_rng(2).random(len(one))


def check_rules() -> None:
    """Every rule comes to the minimum cut of two parts, and near the relaxed one of processors."""
    seeds = {0: 0, SIDE * (SIDE - 1): 0, SIDE - 1: 1, SIDE * SIDE - 1: 1}
    for rule, step in STEPS.items():
        problem, given = GraphCut(grid(), seeds), {"budget": 40, "schedule": Cosine(step)}
        gpu = minimise(problem, rule, runtime=Cuda(), **given)
        alone = minimise(problem, rule, strategy=Serial(), **given)
        assert gpu.model.cut == alone.model.cut, rule
        assert gpu.result["relaxed_cut"] < 1.1 * alone.result["relaxed_cut"], rule
        np.testing.assert_allclose(gpu.model.shares.sum(axis=1), 1, atol=1e-5)
        np.testing.assert_array_equal(gpu.model.parts[list(seeds)], list(seeds.values()))


def check_evaluation() -> None:
    """The figures of a record are those that processors find for the same shares, also with costs of three parts."""
    costs = np.random.default_rng(0).random((SIDE * SIDE, 3))
    problem = GraphCut(grid(), costs=costs)
    run = minimise(problem, runtime=Cuda(), budget=20)
    chunk = problem.data.in_order()[0]
    sums = problem.measure(chunk, run.state)
    np.testing.assert_allclose(run.result["loss"], problem.metrics(sums)["loss"], rtol=1e-5)
    alone = minimise(problem, strategy=Serial(), budget=20)
    assert run.model.cut < 1.05 * alone.model.cut


def check_sampling(folder: Path) -> None:
    """Edges that are drawn, a mean of iterates, and a run that goes on."""
    problem = GraphCut(grid(), {0: 0, SIDE * SIDE - 1: 1}, sampling="weighted")
    given = {"runtime": Cuda(), "checkpoint": folder, "schedule": 0.1}
    minimise(problem, "adagrad", budget=2, **given)
    run = minimise(problem, "adagrad", budget=4, resume=True, **given)
    assert [record["epoch"] for record in run.history] == [1, 2, 3, 4]
    assert minimise(problem, runtime=Cuda(), budget=20, average=0.5, schedule=0.1).model.cut < 2.6


def check_refusals() -> None:
    many = GraphCut(grid(), costs=np.eye(SIDE * SIDE, 300))
    with pytest.raises(ParameterError, match=r"runtime=Threads\(\)"):
        minimise(many, runtime=Cuda(), budget=1)


if __name__ == "__main__":
    assert config.ENABLE_CUDASIM
    check_rules()
    check_evaluation()
    check_sampling(Path(sys.argv[1]))
    check_refusals()
