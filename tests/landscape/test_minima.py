"""Balls, spheres, sensitivities, climbs, spectra and traces on surfaces of which everything is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from grounds import linear
from hypothesis import given
from hypothesis import strategies as st

from hogwild.errors import ParameterError
from hogwild.landscape import (
    Changes,
    Quadratic,
    ball,
    matching_radius,
    mean_square,
    sensitivity,
    sharpness,
    spectrum,
    sphere,
    summary,
    surface,
    trace,
)
from hogwild.landscape.loss_slices import in_ball, on_sphere, p_norm

ORDERS = [1, 1.5, 2, 3.7, 1000.0, math.inf]


def bowl(size: int = 6, seed: int = 0) -> Quadratic:
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(size, size))
    return Quadratic(matrix @ matrix.T)


@given(st.integers(0, 1000), st.integers(1, 30), st.sampled_from(ORDERS))
def test_directions_have_length_one_in_their_norm(seed: int, size: int, p: float) -> None:
    direction = on_sphere(np.random.default_rng(seed), size, p)
    assert p_norm(direction, p) == pytest.approx(1, abs=1e-12)
    if p < 1000:  # NumPy's own norm underflows
        assert np.linalg.norm(direction, p) == pytest.approx(1, abs=1e-12)
    assert p_norm(in_ball(np.random.default_rng(seed), size, p), p) <= 1


@pytest.mark.parametrize("p", ORDERS)
def test_points_in_a_ball_are_those_of_a_cube_that_lie_in_the_ball(p: float) -> None:
    rng = np.random.default_rng(0)
    drawn = np.array([in_ball(rng, 3, p) for _ in range(4000)])
    cube = rng.uniform(-1, 1, (40_000, 3))
    expected = cube[[p_norm(point, p) <= 1 for point in cube]]
    looks = (lambda points: points[:, 0], lambda points: np.abs(points).min(axis=1), lambda points: points @ [1, 1, 1])
    for look in looks:
        ours, theirs, both = look(drawn), look(expected), np.linspace(-3, 3, 601)
        shares = [np.searchsorted(np.sort(each), both) / len(each) for each in (ours, theirs)]
        assert np.abs(shares[0] - shares[1]).max() < 0.04  # 1.63 * sqrt(1/4000 + 1/6600) is a chance of 1 in 100
    assert np.square(drawn).mean() == pytest.approx(mean_square(3, p), rel=0.05)


@pytest.mark.parametrize("p", ORDERS)
def test_the_mean_square_of_a_coordinate_on_a_sphere(p: float) -> None:
    rng = np.random.default_rng(1)
    drawn = np.array([on_sphere(rng, 4, p) for _ in range(4000)])
    assert np.square(drawn).mean() == pytest.approx(mean_square(4, p, "sphere"), rel=0.05)


@pytest.mark.parametrize("p", ORDERS)
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


@pytest.mark.parametrize("p", [1, 1.5, 2, math.inf])
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
    norms = np.linalg.norm(points @ ground.matrix, axis=1) - np.linalg.norm(at @ ground.matrix)
    assert found.gradient_norm.each == pytest.approx(norms)
    again = sphere(ground, at, radius=0.3, p=p, directions=20, seed=4)
    assert (again.loss.each == found.loss.each).all()
    assert (sphere(ground, at, 0.3, p, 20, seed=5).loss.each != found.loss.each).all()


@pytest.mark.parametrize("at", [np.zeros(6), np.linspace(-1, 1, 6)], ids=["minimum", "slope"])
@pytest.mark.parametrize("p", ORDERS)
def test_the_mean_rise_in_a_ball_is_the_trace_of_the_hessian(p: float, at: Any) -> None:
    ground, n, radius = bowl(), 6, 0.8
    whole = np.trace(ground.matrix)
    inside, outside = (look(ground, at, radius, p, 2000, seed=3) for look in (ball, sphere))
    if p == 2:
        assert mean_square(n) == 1 / (n + 2)
    assert abs(inside.loss.mean - radius**2 / 2 * mean_square(n, p) * whole) < 4 * inside.loss.error
    assert abs(outside.loss.mean - radius**2 / 2 * mean_square(n, p, "sphere") * whole) < 4 * outside.loss.error
    squares = Changes(np.square(inside.gradient.each))
    expected = radius**2 * mean_square(n, p) * np.trace(ground.matrix @ ground.matrix)
    assert abs(squares.mean - expected) < 4 * squares.error
    assert (inside.where, outside.where) == ("ball", "sphere")


def test_balls_of_matching_radii_measure_the_same_on_a_quadratic() -> None:
    ground = bowl()
    for p in ORDERS:
        found = ball(ground, np.zeros(6), matching_radius(0.8, 6, p), p, 2000)
        assert abs(found.loss.mean - 0.8**2 / (2 * 8) * np.trace(ground.matrix)) < 4 * found.loss.error


def test_at_a_minimum_the_gradient_grows_by_as_much_as_it_changes() -> None:
    found = ball(bowl(), np.zeros(6), 0.5)
    assert found.gradient_norm.each == pytest.approx(found.gradient.each)
    uphill = ball(bowl(), np.linspace(-1, 1, 6), 0.5)
    assert (uphill.gradient_norm.each < uphill.gradient.each).all()


def test_a_standard_error_is_that_of_a_sample() -> None:
    each = np.array([1.0, 2.0, 4.0, 9.0])
    assert Changes(each).error == pytest.approx(each.std(ddof=1) / 2)
    assert Changes(each, population=16).error == pytest.approx(each.std(ddof=1) / 2 * math.sqrt(0.75))
    assert Changes(each, population=4).error == 0
    assert math.isnan(Changes(each[:1]).error)
    assert Changes(each[:1], population=1).error == 0


def test_moves_in_units_are_moves_along_scaled_coordinates() -> None:
    ground, at, units = bowl(), np.linspace(-1, 1, 6), np.array([1.0, 2, 3, 4, 5, 6])
    scaled = Quadratic(units[:, None] * ground.matrix * units)
    for look in (ball, sphere):
        found, same = look(ground, at, 0.3, 1.5, units=units), look(scaled, at / units, 0.3, 1.5)
        for one, other in ((found.loss, same.loss), (found.gradient, same.gradient),
                           (found.gradient_norm, same.gradient_norm)):  # fmt: skip
            assert one.each == pytest.approx(other.each)
    length = math.sqrt(np.mean(np.square(at)))
    shared = ball(ground, at, 0.3, units="filters")
    assert shared.loss.each == pytest.approx(ball(ground, at, 0.3 * length).loss.each)


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


def test_sharpness_in_other_norms() -> None:
    ground, at = bowl(), np.linspace(-1, 1, 6)
    slope = ground.matrix @ at
    largest = np.abs(slope) == np.abs(slope).max()
    assert sharpness(ground, at, 0.2, p=math.inf).where == pytest.approx(at + 0.2 * np.sign(slope))
    assert sharpness(ground, at, 0.2, p=1).where == pytest.approx(at + 0.2 * np.sign(slope) * largest)
    dual = np.sign(slope) * np.abs(slope) ** 0.5  # q - 1 of p = 3
    assert sharpness(ground, at, 0.2, p=3).where == pytest.approx(at + 0.2 * dual / np.linalg.norm(dual, 3))
    for p in ORDERS:  # a step goes back to the top of a hill, from which it came
        assert sharpness(Quadratic(-np.eye(1)), np.zeros(1), 0.5, steps=4, p=p).rise == 0
    values = np.array([8.0, 1.0, 3.0])
    for p, rise in ((1, 8.0), (2, 8.0), (math.inf, 12.0)):
        assert sharpness(Quadratic(np.diag(values)), np.zeros(3), 0.5, 60, p=p).rise == pytest.approx(rise / 8)


def test_sensitivity_of_a_quadratic() -> None:
    ground, at = bowl(), np.linspace(-1, 1, 6)
    units = np.array([1.0, 2, 3, 4, 5, 6])
    found = sensitivity(ground, at, radius=0.1, units=units)
    slope, bent, moved = ground.matrix @ at, np.diag(ground.matrix), 0.1 * units
    assert found.up == pytest.approx(slope * moved + bent * moved**2 / 2)
    assert found.down == pytest.approx(-slope * moved + bent * moved**2 / 2)
    assert found.mean == pytest.approx(bent * moved**2 / 2)
    assert (found.most == np.maximum(found.up, found.down)).all()
    scaled, moves = units[:, None] * ground.matrix, 0.1 * np.diag(units)
    for sign, ours in ((1, found.gradient_up), (-1, found.gradient_down)):
        norms = [np.linalg.norm(scaled @ (at + sign * move)) - np.linalg.norm(scaled @ at) for move in moves]
        assert ours == pytest.approx(np.array(norms))
    assert (found.gradient_mean == (found.gradient_up + found.gradient_down) / 2).all()
    assert (found.loss.mean, found.loss.error) == (pytest.approx(found.mean.mean()), 0)
    assert (found.gradient_norm.mean, found.gradient_norm.error) == (pytest.approx(found.gradient_mean.mean()), 0)
    some = sensitivity(ground, at, radius=0.1, coordinates=[4, 1], units=units)
    assert some.up == pytest.approx(found.up[[4, 1]])
    random = sensitivity(ground, at, radius=0.1, coordinates=3, seed=2)
    assert len(set(random.coordinates.tolist())) == 3
    assert (random.units == 1).all()
    assert random.loss.error == pytest.approx(random.mean.std(ddof=1) * math.sqrt((1 - 3 / 6) / 3))


def test_sensitivity_is_the_same_however_features_are_scaled() -> None:
    from grounds import rows

    from hogwild import Linear

    X, y = rows()
    scales = np.array([1.0, 2.0, 4.0, 0.25, 64.0])
    one, other = surface(Linear((X, y), "squared", l2=0)), surface(Linear((X * scales, y), "squared", l2=0))
    at = np.linspace(-1, 1, 6)
    there = np.append(at[:-1] / scales, at[-1])
    assert sensitivity(one, at).up == pytest.approx(sensitivity(other, there).up)
    assert sensitivity(one, at).gradient_up == pytest.approx(sensitivity(other, there).gradient_up)
    cubes = [ball(ground, point, 0.1, math.inf, units="standardised") for ground, point in ((one, at), (other, there))]
    assert cubes[0].loss.each == pytest.approx(cubes[1].loss.each)
    assert cubes[0].gradient_norm.each == pytest.approx(cubes[1].gradient_norm.each)


def test_a_summary_has_all_three_forms_with_their_errors() -> None:
    ground, at = bowl(), np.linspace(-1, 1, 6)
    found = summary(ground, at, radius=0.2, samples=20, coordinates=4, steps=3, seed=5)
    assert found["sharpness"] == sharpness(ground, at, 0.2, 3, seed=5).rise
    for name, p in (("1", 1), ("2", 2), ("inf", math.inf)):
        same = ball(ground, at, matching_radius(0.2, 6, p), p, 20, seed=5)
        assert found[f"ball_{name}_loss"] == same.loss.mean
        assert found[f"ball_{name}_gradient_norm_error"] == same.gradient_norm.error
    coordinates = sensitivity(ground, at, 0.2, 4, seed=5)
    assert found["coordinates_gradient_norm"] == coordinates.gradient_norm.mean
    assert found["coordinates_loss_error"] == coordinates.loss.error > 0
    assert len(found) == 1 + 4 * 4


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
        (sphere, {"radius": 1.0, "p": 0.5}, "at least 1"),
        (ball, {"radius": 1.0, "p": math.nan}, "at least 1"),
        (ball, {"radius": 1.0, "p": "2"}, "at least 1"),
        (ball, {"radius": 1.0, "samples": 0}, "samples"),
        (ball, {"radius": 1.0, "units": "standardized"}, "Did you mean 'standardised'"),
        (ball, {"radius": 1.0, "units": "filters"}, "All parameters are zero"),
        (sharpness, {"p": 0}, "at least 1"),
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
        look(bowl(), np.full(6, np.nan), **({"radius": 1.0} if look in (ball, sphere) else {}))


def test_a_minimum_of_a_model_is_one_from_all_sides() -> None:
    from hogwild import minimise

    problem = linear("logistic", l2=0.1)
    ground = surface(problem)
    at = ground.at(minimise(problem, strategy="serial", budget=300))
    assert (sphere(ground, at, 0.5).loss.each > 0).all()
    assert ball(ground, at, 0.5, 1.5).gradient_norm.mean > 0
    assert (sensitivity(ground, at, 0.5).mean > 0).all()
    assert sharpness(ground, at, 0.5, steps=20).rise >= sphere(ground, at, 0.5).loss.most
    assert spectrum(ground, at, k=6).values[-1] > 0
