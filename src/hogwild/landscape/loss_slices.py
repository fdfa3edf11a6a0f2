"""Slices through a surface: the loss along a line and over a plane."""

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
    """Loss along a line, at ``centre + x * direction`` for each of ``xs``."""

    centre: Vector
    direction: Vector
    xs: Vector
    losses: Vector


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """Loss over a plane at ``centre + x * across + y * up``; ``losses[j, i]`` is at ``xs[i]`` and ``ys[j]``."""

    centre: Vector
    across: Vector
    up: Vector
    xs: Vector
    ys: Vector
    losses: Grid


def line(
    surface: Surface, at: Vector, direction: Any = None, radius: float = 1.0, points: int = 41, seed: int = 0
) -> Line:  # fmt: skip
    """Evaluate the loss along a line, up to ``radius`` times the direction to either side.

    The default direction is random and filter-normalised (Li et al. 2018). Each block, a filter of a net or the weights
    of one output, has the norm of that block of the parameters. A move of 1 therefore changes each block by its own
    norm.

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
    """Evaluate the loss on a grid of ``points`` by ``points`` around a point, along two directions.

    The default directions are random and filter-normalised, as in :func:`line`.

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
    """Evaluate the loss at every point of a grid.

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
