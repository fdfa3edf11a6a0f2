"""Slices through a surface: the loss along a line, and over a plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.landscape.directions import random_filters
from hogwild.landscape.surface import Surface, Vector, checked
from hogwild.registry import invalid_parameter

Grid = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """The loss at ``centre + x * direction`` for each of ``xs``."""

    centre: Vector
    direction: Vector
    xs: Vector
    losses: Vector


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """The loss at ``centre + x * across + y * up``: ``losses[row, column]`` for ``ys[row]`` and ``xs[column]``."""

    centre: Vector
    across: Vector
    up: Vector
    xs: Vector
    ys: Vector
    losses: Grid


def line(
    surface: Surface, at: Vector, direction: Any = None, radius: float = 1.0, points: int = 41, seed: int = 0
) -> Line:  # fmt: skip
    """Walk ``radius`` times a direction to either side.

    Without one it is random and filter-normalised (Li et al. 2018): every block of it, a filter of a net or the weights
    of one output, is as long as that block of the parameters, so that a walk of 1 changes each by as much as
    it is.

    >>> from hogwild.landscape.quadratic import Quadratic
    >>> line(Quadratic(np.eye(2)), np.zeros(2), direction=[0.0, 2.0], points=3).losses
    array([2., 0., 2.])
    """
    at = checked(surface, at)
    chance = np.random.default_rng(seed)
    way = random_filters(chance, at, surface.blocks) if direction is None else checked(surface, direction, "direction")
    xs = _ticks(radius, points)
    return Line(at, way, xs, np.array([surface.loss(at + x * way) for x in xs]))


def plane(
    surface: Surface, at: Vector, directions: Any = None, radius: float = 1.0, points: int = 21, seed: int = 0
) -> Plane:  # fmt: skip
    """Look at a square of ``points`` by ``points`` places around one, along two directions.

    Without any they are random and filter-normalised, as those of a :func:`line`.

    >>> from hogwild.landscape.quadratic import Quadratic
    >>> plane(Quadratic(np.diag([2.0, 4.0])), np.zeros(2), directions=np.eye(2), points=3).losses
    array([[3., 2., 3.],
           [1., 0., 1.],
           [3., 2., 3.]])
    """
    at = checked(surface, at)
    chance = np.random.default_rng(seed)
    if directions is None:
        directions = [random_filters(chance, at, surface.blocks) for _ in range(2)]
    if len(directions) != 2:
        raise invalid_parameter("directions", "two vectors", len(directions))
    across, up = (checked(surface, each, "directions") for each in directions)
    ticks = _ticks(radius, points)
    return over(surface, at, across, up, ticks, ticks)


def over(surface: Surface, centre: Vector, across: Vector, up: Vector, xs: Vector, ys: Vector) -> Plane:
    """The loss at every place of a grid.

    >>> from hogwild.landscape.quadratic import Quadratic
    >>> over(Quadratic(np.eye(2)), np.zeros(2), *np.eye(2), xs=np.array([2.0, 4.0]), ys=np.zeros(1)).losses
    array([[2., 8.]])
    """
    losses = np.array([[surface.loss(centre + x * across + y * up) for x in xs] for y in ys])
    return Plane(centre, across, up, xs, ys, losses)


def _ticks(radius: float, points: int) -> Vector:
    if not 0 < radius < float("inf"):
        raise invalid_parameter("radius", "a positive number", radius)
    if points < 2:
        raise invalid_parameter("points", "at least 2", points)
    return np.linspace(-radius, radius, points)
