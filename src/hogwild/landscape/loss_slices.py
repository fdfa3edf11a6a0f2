"""Slices of the objective along lines and planes, and the random directions that span them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hogwild.errors import ParameterError
from hogwild.landscape.surface import Surface, Vector, checked
from hogwild.registry import invalid_parameter

Where = Literal["ball", "sphere"]  # the volume of a ball, or its surface


def p_norm(vector: Vector, p: float) -> float:
    """Compute the p-norm of a vector, without underflow of the powers for a large ``p``.

    >>> p_norm(np.array([3.0, 4.0]), 2), p_norm(np.array([0.5, 0.25]), 10_000)
    (5.0, 0.5)
    """
    if p in (1, 2, math.inf):
        return float(np.linalg.norm(vector, p))
    sizes = np.abs(vector)
    largest = float(sizes.max(initial=0.0))
    return largest * float(np.sum((sizes / largest) ** p) ** (1 / p)) if largest else 0.0


def on_sphere(rng: np.random.Generator, size: int, p: float = 2) -> Vector:
    """Draw a random point of p-norm 1: on a diamond for p = 1, on a round sphere for 2, on a cube for infinity.

    The coordinates are independent, with a density proportional to ``exp(-|x|^p)``, and are divided by their p-norm
    (Barthe et al. 2005). The share of a part of the sphere is the share of the ball that lies below this part. For p of
    1, 2 and infinity this is the uniform distribution on the surface.

    >>> direction = on_sphere(np.random.default_rng(0), 5, p=math.inf)
    >>> float(abs(direction).max())
    1.0
    """
    _check_order(p)
    if p == 2:
        drawn = rng.standard_normal(size)
    else:  # |x|^p has a gamma distribution of shape 1 / p; written so that no power underflows for a large p
        drawn = rng.standard_gamma(1 + 1 / p, size) ** (1 / p) * rng.uniform(-1, 1, size)
    return np.asarray(drawn / p_norm(drawn, p))


def in_ball(rng: np.random.Generator, size: int, p: float = 2) -> Vector:
    """Draw a random point of p-norm at most 1, uniform in the volume of the ball.

    Within a ball of many dimensions nearly all of the volume is next to the surface: the mean distance from the centre
    is ``size / (size + 1)``.

    >>> drawn = np.array([in_ball(np.random.default_rng(seed), 1) for seed in range(1000)])
    >>> bool((abs(drawn) <= 1).all()), round(float(abs(drawn).mean()), 1)
    (True, 0.5)
    """
    return np.asarray(on_sphere(rng, size, p) * rng.random() ** (1 / size))


def mean_square(size: int, p: float = 2, where: str = "ball") -> float:
    """Compute the mean square of one coordinate of a random point in the unit p-ball, or on its sphere.

    The mean rise of a quadratic form from the centre is ``radius^2 / 2`` times this number times the trace of the
    Hessian, for every ``p``, because different coordinates are uncorrelated.

    >>> mean_square(8, p=2), mean_square(8, p=2, where="sphere"), mean_square(8, p=math.inf)
    (0.1, 0.125, 0.3333333333333333)
    """
    _check_order(p)
    if where not in ("ball", "sphere"):
        raise invalid_parameter("where", "'ball' or 'sphere'", where, ("ball", "sphere"))
    if p == 2:
        inside = 1 / (size + 2)
    elif p == math.inf:
        inside = 1 / 3
    else:
        parts = math.lgamma(3 / p) - math.lgamma(1 / p), math.lgamma(size / p + 1) - math.lgamma((size + 2) / p + 1)
        inside = math.exp(sum(parts))
    return inside * (size + 2) / size if where == "sphere" else inside


def matching_radius(radius: float, size: int, p: float) -> float:
    """Return the radius of a p-ball whose points are as far from its centre as those of a 2-ball, in mean square.

    Balls of equal radius and different ``p`` contain moves of very different lengths. With matching radii, all of them
    measure the same on a quadratic form.

    >>> round(matching_radius(1.0, 100, math.inf), 3), round(matching_radius(1.0, 100, 1), 2)
    (0.171, 7.11)
    """
    return radius * math.sqrt(mean_square(size, 2) / mean_square(size, p))


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


def filter_units(at: Vector, blocks: Iterable[slice]) -> Vector:
    """Return the root mean square of the parameters of each block, as the unit of each coordinate in the block.

    A move of 1 in such units changes every filter by the same share, as in :func:`filter_normalised`. A block of
    parameters that is zero has units of zero.

    >>> filter_units(np.array([3.0, 3.0, 0.5]), [slice(0, 2), slice(2, 3)])
    array([3. , 3. , 0.5])
    """
    found = np.zeros_like(at)
    for block in blocks:
        found[block] = float(np.linalg.norm(at[block])) / math.sqrt(max(1, at[block].size))
    if not found.any():
        raise ParameterError("All parameters are zero here, and so are the units of their blocks: give other 'units'.")
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


def _check_order(p: object) -> None:
    if not (isinstance(p, Real) and float(p) >= 1):
        raise invalid_parameter("p", "a number of at least 1, or infinity", p)


def _ticks(radius: float, points: int) -> Vector:
    if not 0 < radius < float("inf"):
        raise invalid_parameter("radius", "a positive number", radius)
    if points < 2:
        raise invalid_parameter("points", "at least 2", points)
    return np.linspace(-radius, radius, points)
