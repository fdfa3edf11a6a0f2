"""Lines, planes, and the way that runs take across them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from grounds import linear, rows

from hogwild import Cosine, Linear, Local, ParameterServer, Ray, Simulator, WarmStart, minimise
from hogwild.errors import ParameterError
from hogwild.landscape import Quadratic, line, path_plane, plane, surface, trajectory
from hogwild.landscape.loss_slices import random_filters


def test_a_line_is_what_is_along_it() -> None:
    ground = surface(linear("softmax", classes=3, l2=0.1))
    at = np.random.default_rng(0).normal(size=ground.size)
    found = line(ground, at, radius=0.5, points=7, seed=3)
    assert found.xs == pytest.approx(np.linspace(-0.5, 0.5, 7))
    assert found.losses == pytest.approx([ground.loss(at + x * found.direction) for x in found.xs])
    assert (line(ground, at, radius=0.5, points=7, seed=3).direction == found.direction).all()
    assert (line(ground, at, radius=0.5, points=7, seed=4).direction != found.direction).any()
    own = line(ground, at, direction=np.ones(ground.size), points=3)
    assert own.losses[2] == pytest.approx(ground.loss(at + 1))


def test_filters_of_a_direction_are_as_long_as_those_of_the_parameters() -> None:
    ground = surface(linear("softmax", classes=3))
    at = np.random.default_rng(0).normal(size=ground.size)
    at[ground.blocks[1]] = 0
    direction = random_filters(np.random.default_rng(1), at, ground.blocks)
    for block in ground.blocks:
        assert np.linalg.norm(direction[block]) == pytest.approx(np.linalg.norm(at[block]))
    with pytest.raises(ParameterError, match="All parameters are zero"):
        line(ground, np.zeros(ground.size))


def test_a_plane_is_what_is_on_it() -> None:
    ground = surface(linear("logistic"))
    at = np.random.default_rng(0).normal(size=ground.size)
    found = plane(ground, at, radius=2.0, points=5, seed=1)
    for row, y in enumerate(found.ys):
        for column, x in enumerate(found.xs):
            there = at + x * found.across + y * found.up
            assert found.losses[row, column] == pytest.approx(ground.loss(there))
    assert found.losses[2, 2] == pytest.approx(ground.loss(at))
    for direction in (found.across, found.up):
        for block in ground.blocks:
            assert np.linalg.norm(direction[block]) == pytest.approx(np.linalg.norm(at[block]))
    assert (found.across != found.up).any()


def test_a_path_in_a_plane_is_found_again() -> None:
    rng = np.random.default_rng(0)
    frame, _ = np.linalg.qr(rng.normal(size=(9, 2)))
    end, flat = rng.normal(size=9), rng.normal(size=(12, 2)) * [5, 1]
    flat[-1] = 0
    path = end + flat @ frame.T
    ground = Quadratic(np.diag(np.arange(1.0, 10.0)))
    found = path_plane(ground, path, points=6, margin=0.1)
    assert sum(found.explained) == pytest.approx(1)
    assert found.explained[0] > found.explained[1]
    again = end + np.outer(found.x, found.plane.across) + np.outer(found.y, found.plane.up)
    assert again == pytest.approx(path)
    assert (found.x[-1], found.y[-1]) == (0, 0)
    assert found.plane.across @ found.plane.up == pytest.approx(0, abs=1e-12)
    assert found.plane.losses[3, 1] == pytest.approx(
        ground.loss(end + found.plane.xs[1] * found.plane.across + found.plane.ys[3] * found.plane.up)
    )
    assert found.plane.xs[0] == pytest.approx(found.x.min() - 0.1 * np.ptp(found.x))
    assert found.plane.ys[-1] == pytest.approx(found.y.max() + 0.1 * np.ptp(found.y))


def test_a_straight_path_has_a_plane_too_and_none_has_not() -> None:
    ground = Quadratic(np.eye(3))
    found = path_plane(ground, np.outer([3, 2, 1, 0], [1.0, 2.0, 2.0]), points=3)
    assert found.explained == (pytest.approx(1), pytest.approx(0))
    assert found.y == pytest.approx(np.zeros(4), abs=1e-12)
    assert np.ptp(found.plane.ys) == pytest.approx(9)
    with pytest.raises(ParameterError, match="three points"):
        path_plane(ground, np.eye(3)[:2])
    with pytest.raises(ParameterError, match="same"):
        path_plane(ground, np.ones((4, 3)))
    with pytest.raises(ParameterError, match="One parameter"):
        path_plane(Quadratic(np.eye(1)), np.ones((4, 1)))
    with pytest.raises(ParameterError, match="two vectors"):
        plane(ground, np.ones(3), directions=np.eye(3))


@pytest.mark.parametrize("rule", ["sgd", "adagrad", "ftrl", "momentum"])
def test_a_trajectory_is_the_same_run(rule: str) -> None:
    problem, how = linear("logistic", l2=0.01), {"rule": rule, "strategy": "serial", "schedule": Cosine(0.3)}
    plain = minimise(problem, **how, budget=6, seed=2)
    path = trajectory(problem, **how, budget=6, seed=2)
    ground = surface(problem)
    assert path.epochs == (0, 1, 2, 3, 4, 5, 6)
    assert (path.points[0] == 0).all()
    assert (path.points[-1] == ground.at(plain)).all()
    assert [record["loss"] for record in path.run.history] == [record["loss"] for record in plain.history]
    for point, record in zip(path.points[1:], path.run.history, strict=True):
        assert ground.loss(point) == pytest.approx(record["objective"], rel=1e-5)


@pytest.mark.parametrize("runtime", [Local(), Simulator()], ids=["local", "simulator"])
def test_the_trajectory_of_a_run_by_messages(runtime: Any) -> None:
    problem = linear("softmax", classes=3)
    path = trajectory(problem, "sgd", Cosine(0.1), ParameterServer(2), runtime, 4)
    ground = surface(problem)
    assert path.epochs == (0, *(record["epoch"] for record in path.run.history))
    for point, record in zip(path.points[1:], path.run.history, strict=True):
        assert ground.loss(point) == pytest.approx(record["objective"], rel=1e-5)
    assert path.points[-1] == pytest.approx(ground.at(path.run))


def test_the_trajectory_of_columns_far_from_zero_and_of_several_threads() -> None:
    X, y = rows()
    problem = Linear((X + 20, y), "squared")
    assert problem.frame is not None
    for strategy in ("serial", "hogwild", "averaging"):
        path = trajectory(problem, strategy=strategy, budget=5)
        assert path.points[-1] == pytest.approx(surface(problem).at(path.run), rel=1e-6)


def test_a_trajectory_may_start_elsewhere_and_go_back() -> None:
    problem = linear("squared")
    first = minimise(problem, "adagrad", Cosine(0.3), "serial", budget=2)
    path = trajectory(problem, "adagrad", Cosine(0.3), "serial", budget=2, init=WarmStart(first.state), average=0.5)
    assert path.points[0] == pytest.approx(surface(problem).at(first))
    heard: list[Any] = []
    wild = trajectory(problem, "sgd", Cosine(3.0), "serial", budget=3, callbacks=[heard.append])
    assert "diverged" in [event["event"] for event in heard]
    assert len(wild.points) == 1 + len(wild.run.history)
    for point, record in zip(wild.points[1:], wild.run.history, strict=True):
        assert surface(problem).loss(point) == pytest.approx(record["objective"], rel=1e-4)


def test_the_path_of_a_run_on_its_plane() -> None:
    problem = linear("logistic", l2=0.05)
    path = trajectory(problem, "sgd", Cosine(0.5), "serial", budget=12)
    found = path_plane(surface(problem), path, points=9)
    assert len(found.x) == 13
    away = path.points - path.points[-1]
    shown = np.square(found.x).sum() + np.square(found.y).sum()
    assert sum(found.explained) == pytest.approx(shown / np.square(away).sum())
    assert found.plane.centre == pytest.approx(path.points[-1])
    assert found.plane.losses.min() >= surface(problem).loss(path.points[-1]) - 0.01


def test_what_has_no_path_is_refused() -> None:
    with pytest.raises(ParameterError, match="resume"):
        trajectory(linear("squared"), resume=True, checkpoint="somewhere")
    with pytest.raises(ParameterError, match="in this process"):
        trajectory(linear("squared"), "sgd", Cosine(0.1), ParameterServer(2), Ray(), 1)
