"""Spheres, sensitivities, climbs, spectra and traces on surfaces of which everything is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from grounds import linear
from hypothesis import given
from hypothesis import strategies as st

from hogwild.errors import ParameterError
from hogwild.landscape import Quadratic, sensitivity, sharpness, spectrum, sphere, surface, trace
from hogwild.landscape.loss_slices import on_sphere


def bowl(size: int = 6, seed: int = 0) -> Quadratic:
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(size, size))
    return Quadratic(matrix @ matrix.T)


@given(st.integers(0, 1000), st.integers(1, 30), st.sampled_from([1, 2, math.inf]))
def test_directions_have_length_one_in_their_norm(seed: int, size: int, p: float) -> None:
    direction = on_sphere(np.random.default_rng(seed), size, p)
    assert np.linalg.norm(direction, p) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("p", [1, 2, math.inf])
def test_directions_prefer_no_orthant_and_no_coordinate(p: float) -> None:
    rng = np.random.default_rng(0)
    drawn = np.array([on_sphere(rng, 3, p) for _ in range(4000)])
    assert np.abs(drawn.mean(axis=0)).max() < 0.05
    assert np.abs(drawn).mean(axis=0) == pytest.approx(np.abs(drawn).mean(), rel=0.05)


class Watched(Quadratic):
    """One that notes where it is looked at."""

    def loss(self, vector: Any) -> float:
        seen.append(vector.copy())
        return super().loss(vector)


seen: list[Any] = []


@pytest.mark.parametrize("p", [1, 2, math.inf])
def test_a_sphere_is_as_large_as_it_says_and_changes_are_those_there(p: float) -> None:
    seen.clear()
    ground, at = Watched(bowl().matrix), np.linspace(-1, 1, 6)
    found = sphere(ground, at, radius=0.3, p=p, directions=20, seed=4)
    middle, points = seen[0], np.array(seen[1:])
    assert (middle == at).all()
    assert np.linalg.norm(points - at, p, axis=1) == pytest.approx(np.full(20, 0.3), abs=1e-12)
    rises = np.array([ground.loss(point) for point in points]) - ground.loss(at)
    turns = np.linalg.norm((points - at) @ ground.matrix, axis=1)
    assert found.loss.each == pytest.approx(rises)
    assert found.gradient.each == pytest.approx(turns)
    assert (found.loss.mean, found.loss.spread, found.loss.most) == (
        pytest.approx(rises.mean()), pytest.approx(rises.std()), pytest.approx(rises.max()),
    )  # fmt: skip
    assert found.gradient.most == pytest.approx(turns.max())
    again = sphere(ground, at, radius=0.3, p=p, directions=20, seed=4)
    assert (again.loss.each == found.loss.each).all()
    assert (sphere(ground, at, 0.3, p, 20, seed=5).loss.each != found.loss.each).all()


def test_sharpness_of_one_step_is_that_of_the_formula() -> None:
    ground, at = bowl(), np.linspace(-1, 1, 6)
    slope = ground.matrix @ at
    there = at + 0.2 * slope / np.linalg.norm(slope)
    found = sharpness(ground, at, rho=0.2)
    assert found.highest == pytest.approx(ground.loss(there))
    assert found.rise == pytest.approx(ground.loss(there) - ground.loss(at))
    assert found.where == pytest.approx(there)


def test_sharpness_of_many_steps_at_a_minimum_is_half_the_largest_eigenvalue() -> None:
    ground = bowl()
    found = sharpness(ground, np.zeros(6), rho=0.5, steps=200)
    assert found.rise == pytest.approx(0.125 * np.linalg.eigvalsh(ground.matrix)[-1], rel=1e-6)
    assert np.linalg.norm(found.where) == pytest.approx(0.5)
    few = sharpness(ground, np.zeros(6), rho=0.5, steps=2)
    assert 0 < few.rise < found.rise


def test_sensitivity_of_a_quadratic() -> None:
    ground, at = bowl(), np.linspace(-1, 1, 6)
    units = np.array([1.0, 2, 3, 4, 5, 6])
    found = sensitivity(ground, at, radius=0.1, units=units)
    slope, bent, moved = ground.matrix @ at, np.diag(ground.matrix), 0.1 * units
    assert found.up == pytest.approx(slope * moved + bent * moved**2 / 2)
    assert found.down == pytest.approx(-slope * moved + bent * moved**2 / 2)
    assert found.mean == pytest.approx(bent * moved**2 / 2)
    assert (found.most == np.maximum(found.up, found.down)).all()
    some = sensitivity(ground, at, radius=0.1, coordinates=[4, 1], units=units)
    assert some.up == pytest.approx(found.up[[4, 1]])
    random = sensitivity(ground, at, radius=0.1, coordinates=3, seed=2)
    assert len(set(random.coordinates.tolist())) == 3
    assert (random.units == 1).all()


def test_sensitivity_is_the_same_however_features_are_scaled() -> None:
    from grounds import rows

    from hogwild import Linear

    X, y = rows()
    scales = np.array([1.0, 2.0, 4.0, 0.25, 64.0])
    one, other = surface(Linear((X, y), "squared")), surface(Linear((X * scales, y), "squared"))
    at = np.linspace(-1, 1, 6)
    there = np.append(at[:-1] / scales, at[-1])
    assert sensitivity(one, at).up == pytest.approx(sensitivity(other, there).up)


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_all_eigenvalues_if_asked_for(size: int) -> None:
    rng = np.random.default_rng(size)
    matrix = rng.normal(size=(size, size))
    ground = Quadratic(matrix + matrix.T)
    found = spectrum(ground, np.zeros(size), k=size)
    assert found.values == pytest.approx(np.linalg.eigvalsh(ground.matrix)[::-1], abs=1e-8)
    assert found.vectors @ found.vectors.T == pytest.approx(np.eye(size), abs=1e-8)


def test_eigenvalues_that_are_the_same_and_a_hessian_that_is_zero() -> None:
    found = spectrum(Quadratic(3 * np.eye(5)), np.zeros(5), k=5)
    assert found.values == pytest.approx(np.full(5, 3.0))
    assert found.vectors @ found.vectors.T == pytest.approx(np.eye(5), abs=1e-10)
    assert (spectrum(Quadratic(np.zeros((4, 4))), np.zeros(4), k=2).values == 0).all()


def test_a_few_eigenvalues_of_many_take_few_steps() -> None:
    values = np.concatenate([np.linspace(0, 1, 397), [10, 20, 30]])
    q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(400, 400)))
    matrix = (q * values) @ q.T
    found = spectrum(Quadratic((matrix + matrix.T) / 2), np.zeros(400), k=3)
    assert found.values == pytest.approx([30, 20, 10])
    assert found.steps < 40
    assert (found.residuals < 1e-4).all()
    rough = spectrum(Quadratic((matrix + matrix.T) / 2), np.zeros(400), k=3, steps=4)
    assert rough.steps == 4
    assert rough.residuals.max() > 1e-4


def test_a_trace_is_as_near_as_it_says() -> None:
    ground = bowl(30)
    found = trace(ground, np.zeros(30), probes=400)
    assert found.error == pytest.approx(found.each.std(ddof=1) / 20)
    assert abs(found.value - np.trace(ground.matrix)) < 4 * found.error


@pytest.mark.parametrize(
    ("look", "wrong", "said"),
    [
        (sphere, {"radius": 0.0}, "radius"),
        (sphere, {"radius": 1.0, "p": 3}, "1, 2 or infinity"),
        (sphere, {"radius": 1.0, "directions": 0}, "directions"),
        (sharpness, {"rho": -1.0}, "rho"),
        (sharpness, {"steps": 0}, "steps"),
        (sensitivity, {"coordinates": 7}, "coordinates"),
        (sensitivity, {"coordinates": [6]}, "coordinates"),
        (sensitivity, {"radius": math.inf}, "radius"),
        (spectrum, {"k": 7}, "'k'"),
        (spectrum, {"k": 3, "steps": 2}, "steps"),
        (trace, {"probes": 1}, "probes"),
    ],
)
def test_what_cannot_be_looked_for_is_refused(look: Any, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        look(bowl(), np.zeros(6), **wrong)
    with pytest.raises(ParameterError, match="finite"):
        look(bowl(), np.full(6, np.nan), **({"radius": 1.0} if look is sphere else {}))


def test_a_minimum_of_a_model_is_one_from_all_sides() -> None:
    from hogwild import minimise

    problem = linear("logistic", l2=0.1)
    ground = surface(problem)
    at = ground.at(minimise(problem, strategy="serial", budget=300))
    assert (sphere(ground, at, 0.5).loss.each > 0).all()
    assert (sensitivity(ground, at, 0.5).mean > 0).all()
    assert sharpness(ground, at, 0.5, steps=20).rise >= sphere(ground, at, 0.5).loss.most
    assert spectrum(ground, at, k=6).values[-1] > 0
