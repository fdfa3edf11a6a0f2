"""Slices of the objective along lines and planes, and the random directions that span them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hogwild.errors import ParameterError
from hogwild.landscape.surface import Surface, Vector, checked
from hogwild.registry import invalid_parameter

NORMS = (1, 2, math.inf)


def on_sphere(rng: np.random.Generator, size: int, p: float = 2) -> Vector:
    """Draw a random direction of p-norm 1, uniform on the unit sphere: a diamond for p = 1, a cube for infinity.

    >>> direction = on_sphere(np.random.default_rng(0), 5, p=math.inf)
    >>> float(abs(direction).max())
    1.0
    """
    if p == 1:
        drawn = rng.laplace(size=size)
    elif p == 2:
        drawn = rng.standard_normal(size)
    elif p == math.inf:
        drawn = rng.uniform(-1, 1, size)
    else:
        raise invalid_parameter("p", "1, 2 or infinity", p)
    return np.asarray(drawn / np.linalg.norm(drawn, p))


def filter_normalised(direction: Vector, at: Vector, blocks: Iterable[slice]) -> Vector:
    """Scale each block of a direction to the norm of the same block of the parameters (Li et al. 2018).

    A step along the result changes every filter by the same share. This makes nets with weights of different sizes
    comparable. A block of parameters that is zero gets a zero direction.

    >>> filter_normalised(np.array([3.0, 4.0, 9.0]), np.array([0.0, 2.0, 0.5]), [slice(0, 2), slice(2, 3)])
    array([1.2, 1.6, 0.5])
    """
    found = np.zeros_like(direction)
    for block in blocks:
        length = float(np.linalg.norm(direction[block]))
        if length:
            found[block] = direction[block] * (float(np.linalg.norm(at[block])) / length)
    if not found.any():
        raise ParameterError(
            "All parameters are zero here, so that no direction is as long as they are: give a 'direction' of your own."
        )
    return found


def random_filters(rng: np.random.Generator, at: Vector, blocks: Iterable[slice]) -> Vector:
    """Draw a random direction, filter-normalised (Li et al. 2018).

    >>> at = np.array([3.0, 4.0, 0.5])
    >>> direction = random_filters(np.random.default_rng(0), at, [slice(0, 2), slice(2, 3)])
    >>> float(np.linalg.norm(direction[:2])), float(abs(direction[2]))
    (5.0, 0.5)
    """
    return filter_normalised(rng.standard_normal(len(at)), at, blocks)


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
    surface: Surface, at: Vector, direction: ArrayLike | None = None, radius: float = 1.0, points: int = 41,
    seed: int = 0,
) -> Line:  # fmt: skip
    """Evaluate the loss along a line, up to ``radius`` times the direction to either side.

    The default direction is random and filter-normalised (Li et al. 2018). Each block, a filter of a net or the weights
    of one output, has the norm of that block of the parameters. A move of 1 therefore changes each block by its own
    norm.

    >>> from hogwild.landscape.surface import Quadratic
    >>> line(Quadratic(np.eye(2)), np.zeros(2), direction=[0.0, 2.0], points=3).losses
    array([2., 0., 2.])
    """
    at = checked(surface, at)
    rng = np.random.default_rng(seed)
    way = random_filters(rng, at, surface.blocks) if direction is None else checked(surface, direction, "direction")
    xs = _ticks(radius, points)
    return Line(at, way, xs, np.array([surface.loss(at + x * way) for x in xs]))


def plane(
    surface: Surface, at: Vector, directions: Sequence[ArrayLike] | Grid | None = None, radius: float = 1.0,
    points: int = 21, seed: int = 0,
) -> Plane:  # fmt: skip
    """Evaluate the loss on a grid of ``points`` by ``points`` around a point, along two directions.

    The default directions are random and filter-normalised, as in :func:`line`.

    >>> from hogwild.landscape.surface import Quadratic
    >>> plane(Quadratic(np.diag([2.0, 4.0])), np.zeros(2), directions=np.eye(2), points=3).losses
    array([[3., 2., 3.],
           [1., 0., 1.],
           [3., 2., 3.]])
    """
    at = checked(surface, at)
    rng = np.random.default_rng(seed)
    if directions is None:
        directions = [random_filters(rng, at, surface.blocks) for _ in range(2)]
    if len(directions) != 2:
        raise invalid_parameter("directions", "two vectors", len(directions))
    across, up = (checked(surface, each, "directions") for each in directions)
    ticks = _ticks(radius, points)
    return over(surface, at, across, up, ticks, ticks)


def over(surface: Surface, centre: Vector, across: Vector, up: Vector, xs: Vector, ys: Vector) -> Plane:
    """Evaluate the loss at every point of a grid.

    >>> from hogwild.landscape.surface import Quadratic
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
