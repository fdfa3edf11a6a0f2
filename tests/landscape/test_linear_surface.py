"""The objective of a linear model as a function of vectors: against the kernels that train it, and numerically."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from grounds import FEATURES, ROWS, hessian, linear, numerical, rows

import references
from hogwild import GraphCut, Linear, minimise
from hogwild.errors import HogwildError, ParameterError
from hogwild.landscape import spectrum, surface, trace
from hogwild.landscape.linear_surface import SECOND, STRAIGHT
from hogwild.losses import LOSSES

SMOOTH = sorted(set(LOSSES) - set(STRAIGHT))


def somewhere(size: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).normal(0, 0.4, size)


def test_every_loss_is_bent_or_straight() -> None:
    assert set(SECOND) | set(STRAIGHT) == set(LOSSES)
    assert set(STRAIGHT.values()) <= set(SECOND)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", SMOOTH)
def test_gradient_and_products_are_those_of_differences(loss: str, sparse: bool) -> None:
    ground = surface(linear(loss, sparse=sparse, l2=0.3, weighted=True))
    at = somewhere(ground.size)
    assert ground.gradient(at) == pytest.approx(numerical(ground.loss, at), rel=1e-5, abs=1e-8)
    dense = numerical(ground.gradient, at, h=1e-6)
    ways = np.random.default_rng(2).normal(size=(3, ground.size))
    for way in ways:
        assert ground.times(at, way) == pytest.approx(dense @ way, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("loss", ["logistic", "softmax", "squared-hinge"])
@pytest.mark.parametrize("class_weight", [None, {0: 0.5, 2: 3.0}], ids=["alike", "weighed"])
def test_several_classes(loss: str, class_weight: Any) -> None:
    ground = surface(linear(loss, classes=3, l2=0.1, class_weight=class_weight))
    assert ground.size == 3 * (FEATURES + 1)
    at, way = somewhere(ground.size), somewhere(ground.size, 5)
    assert ground.gradient(at) == pytest.approx(numerical(ground.loss, at), rel=1e-5, abs=1e-8)
    dense = numerical(ground.gradient, at, h=1e-6)
    assert ground.times(at, way) == pytest.approx(dense @ way, rel=1e-4, abs=1e-6)


def test_class_weights_of_two_classes() -> None:
    ground = surface(linear("logistic", class_weight="balanced"))
    heavy = surface(linear("logistic", class_weight={1: 4.0}))
    at, way = somewhere(ground.size), somewhere(ground.size, 5)
    assert heavy.times(at, way) == pytest.approx(numerical(heavy.gradient, at, h=1e-6) @ way, rel=1e-5)
    assert heavy.loss(at) != ground.loss(at)


@pytest.mark.parametrize(
    ("loss", "classes", "options"),
    [
        ("logistic", 2, {"l2": 0.05}),
        ("squared", 2, {"l2": 0.05}),
        ("softmax", 3, {"l2": 0.05}),
        ("logistic", 3, {"l2": 0.2}),
        ("squared", 2, {"intercept": False}),
        ("softmax", 3, {"intercept": False, "l2": 0.1}),
    ],
)
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_eigenvalues_and_trace_are_those_of_the_whole_hessian(
    loss: str, classes: int, options: dict[str, Any], weighted: bool
) -> None:
    problem = linear(loss, classes=classes, weighted=weighted, **options)
    ground = surface(problem)
    at = somewhere(ground.size)
    dense = hessian(problem, at, (np.arange(ROWS) % 4 + 1) / 2 if weighted else None)
    assert np.array([ground.times(at, way) for way in np.eye(ground.size)]) == pytest.approx(
        dense, rel=1e-10, abs=1e-12
    )
    largest = np.sort(np.linalg.eigvalsh(dense))[::-1]
    found = spectrum(ground, at, k=4)
    assert found.values == pytest.approx(largest[:4], rel=1e-8)
    for value, vector, residual in zip(found.values, found.vectors, found.residuals, strict=True):
        assert np.linalg.norm(vector) == pytest.approx(1)
        assert np.linalg.norm(dense @ vector - value * vector) <= residual + 1e-10
    estimate = trace(ground, at, probes=200, seed=3)
    assert abs(estimate.value - np.trace(dense)) < 4 * estimate.error
    assert estimate.error < 0.2 * np.trace(dense)


@pytest.mark.parametrize(
    ("loss", "options", "sparse"),
    [
        (loss, options, sparse)
        for loss, options, usual in [
            ("logistic", {"l2": 0.01}, True), ("hinge", {"l1": 0.01}, False), ("softmax", {"classes": 3}, False),
            ("quantile:0.3", {}, None),
        ]
        for sparse in (False, True)
        if references.ALL or sparse == usual
    ],
)  # fmt: skip
def test_the_loss_at_a_solution_is_the_objective_of_the_run(loss: str, options: dict[str, Any], sparse: bool) -> None:
    problem = linear(loss, sparse=sparse, weighted=True, **options)
    run = minimise(problem, "sgd", strategy="serial", budget=20)
    ground = surface(problem)
    assert ground.loss(ground.at(run)) == pytest.approx(run.objective, rel=1e-5)
    assert (ground.at(run) == ground.at(run.model)).all()


def test_other_data_and_a_problem_without_intercept() -> None:
    problem = linear("squared", intercept=False, l2=0)
    X, y = rows()
    ground = surface(problem, (X[:10, :3], y[:10]))
    at = somewhere(FEATURES)
    assert ground.size == FEATURES
    assert ground.loss(at) == pytest.approx(np.mean(np.square(X[:10, :3] @ at[:3] - y[:10])) / 2)
    with pytest.raises(ParameterError, match="6 features"):
        surface(problem, (np.ones((2, 6)), [1.0, 2.0]))


def test_columns_far_from_zero_are_looked_at_as_they_are() -> None:
    X, y = rows()
    problem = Linear((X + 100, y), "squared", l2=0)
    assert problem.frame is not None
    run = minimise(problem, strategy="serial", budget=50)
    ground = surface(problem)
    at = ground.at(run)
    assert ground.loss(at) == pytest.approx(run.objective, rel=1e-2)
    assert ground.loss(at) == pytest.approx(np.mean(np.square((X + 100) @ at[:-1] + at[-1] - y)) / 2)


def test_rows_on_disk_that_are_larger_than_memory_are_read_piece_by_piece(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hogwild.data import as_dataset
    from hogwild.data.in_memory import InMemoryDataset

    problem = linear("logistic", sparse=True)
    here = surface(problem)
    monkeypatch.setattr(InMemoryDataset, "at_once", lambda self: None)
    there = surface(
        Linear(InMemoryDataset(as_dataset((rows()[0], problem.source.labels())).rows, shuffled=False, chunk=7))
    )
    at, way = somewhere(here.size), somewhere(here.size, 4)
    assert there.loss(at) == pytest.approx(here.loss(at))
    assert there.gradient(at) == pytest.approx(here.gradient(at))
    assert there.times(at, way) == pytest.approx(here.times(at, way))
    assert there.units(at) == pytest.approx(here.units(at))


def test_a_loss_of_ones_own_is_bent_as_its_slopes_say() -> None:
    def quartic(z: float, y: float) -> tuple[float, float]:
        return (z - y) ** 4 / 4, (z - y) ** 3

    X, y = rows()
    ground = surface(Linear((X, y), quartic, l2=0))
    at, way = somewhere(ground.size), somewhere(ground.size, 4)
    table = np.hstack([X, np.ones((ROWS, 1))])
    bent = 3 * np.square(table @ at - y)
    assert ground.times(at, way) == pytest.approx(table.T @ (bent * (table @ way)) / ROWS, rel=1e-6)


@pytest.mark.parametrize("loss", sorted(STRAIGHT))
def test_straight_losses_have_no_hessian_but_can_be_looked_at(loss: str) -> None:
    ground = surface(linear(loss))
    at = somewhere(ground.size)
    assert ground.gradient(at) == pytest.approx(numerical(ground.loss, at, h=1e-7), rel=1e-3, abs=1e-6)
    with pytest.raises(ParameterError, match="straight pieces"):
        spectrum(ground, at)


def test_units_are_those_of_scaled_features() -> None:
    X, _ = rows()
    for sparse in (False, True):
        problem = linear("softmax", classes=3, sparse=sparse)
        units = surface(problem).units(np.zeros(3 * (FEATURES + 1)))
        assert units[: 3 * FEATURES : 3] == pytest.approx(1 / X.std(axis=0))
        assert (units[0], units[3 * FEATURES]) == (units[1], 1.0)


def test_blocks_hold_every_parameter_once() -> None:
    ground = surface(linear("softmax", classes=3))
    weights = np.arange(3 * FEATURES).reshape(FEATURES, 3)
    assert [list(np.arange(ground.size)[block]) for block in ground.blocks] == [
        *weights.T.tolist(), [3 * FEATURES], [3 * FEATURES + 1], [3 * FEATURES + 2],
    ]  # fmt: skip


def test_what_has_no_surface_is_refused() -> None:
    with pytest.raises(HogwildError, match="Linear or a Module"):
        surface(object.__new__(GraphCut))
    other = minimise(linear("squared"), strategy="serial", budget=1)
    with pytest.raises(HogwildError, match="run of this problem"):
        surface(linear("softmax", classes=3)).at(other)
    with pytest.raises(HogwildError, match="vector of 6 numbers"):
        spectrum(surface(linear("squared")), np.zeros(5))


def test_no_module_no_torch() -> None:
    code = (
        "import sys, numpy as np, hogwild; ground = hogwild.landscape.surface(hogwild.Linear((np.eye(3), [1, 2, 3]), "
        "'squared')); hogwild.landscape.spectrum(ground, np.zeros(4), k=2); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=200)
