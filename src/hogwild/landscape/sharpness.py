"""Sharpness of a minimum: the change of the objective in a ball, on spheres and along each coordinate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hogwild.landscape.loss_slices import on_sphere
from hogwild.landscape.surface import Surface, Vector, checked
from hogwild.registry import invalid_parameter


@dataclass(frozen=True, slots=True, eq=False)
class Sharpness:
    """Highest loss found within ``rho`` of a point, and its position."""

    rho: float
    loss: float  # loss at the centre of the ball
    highest: float
    where: Vector

    @property
    def rise(self) -> float:
        """The rise from the centre to the highest loss, which SAM (Foret et al. 2021) calls sharpness."""
        return self.highest - self.loss


def sharpness(surface: Surface, at: Vector, rho: float = 0.05, steps: int = 1, seed: int = 0) -> Sharpness:
    """Search for the highest loss within a ball of radius ``rho`` in the 2-norm, by gradient ascent.

    A single step is that of SAM: ``rho`` along the gradient. Each further step goes ``rho`` along the gradient at its
    position, and is projected back onto the ball. The result is the highest loss of all steps. Where the gradient is
    zero the first step goes in a random direction, and several steps are needed to find the direction of ascent.

    >>> from hogwild.landscape.surface import Quadratic
    >>> bowl = Quadratic(np.diag([8.0, 1.0]))
    >>> sharpness(bowl, np.zeros(2), rho=0.5, steps=20).rise
    1.0
    """
    at = checked(surface, at)
    if not 0 < rho < float("inf"):
        raise invalid_parameter("rho", "a positive number", rho)
    if steps < 1:
        raise invalid_parameter("steps", "a positive integer", steps)
    loss, move = surface.loss(at), np.zeros(surface.size)
    highest, where = -float("inf"), at
    for _ in range(steps):
        gradient = surface.gradient(at + move)
        length = float(np.linalg.norm(gradient))
        way = gradient / length if length else on_sphere(np.random.default_rng(seed), surface.size)
        move = move + rho * way
        move = move * min(1.0, rho / float(np.linalg.norm(move)))
        there = surface.loss(at + move)
        if there > highest:
            highest, where = there, at + move
    return Sharpness(rho, loss, highest, where)


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Changes of one quantity, a value for each sampled direction.

    >>> changes = Changes(np.array([1.0, 2.0, 3.0]))
    >>> changes.mean, round(changes.spread, 3), changes.most
    (2.0, 0.816, 3.0)
    """

    each: Vector

    @property
    def mean(self) -> float:
        """The mean over the directions."""
        return float(self.each.mean())

    @property
    def spread(self) -> float:
        """The standard deviation over the directions."""
        return float(self.each.std())

    @property
    def most(self) -> float:
        """The largest change."""
        return float(self.each.max())


@dataclass(frozen=True, slots=True, eq=False)
class Sphere:
    """Changes from the centre of a sphere to points on it.

    ``loss`` holds the rises of the loss, negative where the loss falls. ``gradient`` holds the 2-norms of the
    differences of the gradients.
    """

    radius: float
    p: float
    loss: Changes
    gradient: Changes


def sphere(
    surface: Surface, at: Vector, radius: float, p: float = 2, directions: int = 32, seed: int = 0
) -> Sphere:  # fmt: skip
    """Measure loss and gradient at a distance of ``radius`` in the p-norm (1, 2 or infinity), in random directions.

    The ``most`` of the result is the largest change among the sampled directions. In many dimensions hardly any sampled
    direction is near the steepest one. :func:`sharpness` climbs towards the steepest direction, and :func:`spectrum`
    computes it.

    >>> from hogwild.landscape.surface import Quadratic
    >>> found = sphere(Quadratic(3 * np.eye(2)), np.zeros(2), radius=2.0)
    >>> found.loss.mean, found.gradient.most
    (6.0, 6.0)
    """
    at = checked(surface, at)
    if not 0 < radius < float("inf"):
        raise invalid_parameter("radius", "a positive number", radius)
    if directions < 1:
        raise invalid_parameter("directions", "a positive integer", directions)
    rng = np.random.default_rng(seed)
    loss, gradient = surface.loss(at), surface.gradient(at)
    rises, turns = np.empty(directions), np.empty(directions)
    for k in range(directions):
        there = at + radius * on_sphere(rng, surface.size, p)
        rises[k] = surface.loss(there) - loss
        turns[k] = np.linalg.norm(surface.gradient(there) - gradient)
    return Sphere(radius, p, Changes(rises), Changes(turns))


@dataclass(frozen=True, slots=True, eq=False)
class Sensitivity:
    """Rise of the loss when a coordinate is moved up or down by ``radius`` of its units."""

    radius: float
    coordinates: NDArray[np.int64]
    units: Vector  # length of one unit along each coordinate
    up: Vector
    down: Vector

    @property
    def mean(self) -> Vector:
        """The mean rise of both moves. At a minimum it is about ``(radius * unit)^2 / 2`` times the curvature."""
        return (self.up + self.down) / 2

    @property
    def most(self) -> Vector:
        """The larger rise of both moves."""
        return np.maximum(self.up, self.down)


def sensitivity(
    surface: Surface, at: Vector, radius: float = 0.1, coordinates: int | Sequence[int] | None = None,
    units: ArrayLike | None = None, seed: int = 0,
) -> Sensitivity:  # fmt: skip
    """Measure the rise of the loss when one coordinate at a time moves by ``radius`` units up and down.

    Units make coordinates comparable; they are ``surface.units`` unless the caller gives others. The unit of a weight
    of a ``Linear`` is one over the standard deviation of its feature. Such a move equals a move of ``radius`` after all
    features are scaled to a deviation of 1: scores change by ``radius`` times the scaled feature. The unit of an
    intercept, and of a feature without variance, is 1. The unit of a parameter of a ``Module`` is the root mean square
    of its tensor (the norm over the root of the size). It is 1 where that is zero.

    Each coordinate costs two evaluations of the loss on all data. ``coordinates`` lists the coordinates, or is the
    number of random ones.

    >>> from hogwild.landscape.surface import Quadratic
    >>> sensitivity(Quadratic(np.diag([4.0, 1.0])), np.zeros(2), radius=1.0).mean
    array([2. , 0.5])
    """
    at = checked(surface, at)
    if not 0 < radius < float("inf"):
        raise invalid_parameter("radius", "a positive number", radius)
    chosen = _chosen(surface.size, coordinates, seed)
    each = surface.units(at) if units is None else checked(surface, units, "units")
    loss, up, down = surface.loss(at), np.empty(len(chosen)), np.empty(len(chosen))
    for k, coordinate in enumerate(chosen):
        there = at.copy()
        there[coordinate] = at[coordinate] + radius * each[coordinate]
        up[k] = surface.loss(there) - loss
        there[coordinate] = at[coordinate] - radius * each[coordinate]
        down[k] = surface.loss(there) - loss
    return Sensitivity(radius, chosen, each[chosen], up, down)


def _chosen(size: int, coordinates: int | Sequence[int] | None, seed: int) -> NDArray[np.int64]:
    if coordinates is None:
        return np.arange(size)
    if isinstance(coordinates, int):
        if not 1 <= coordinates <= size:
            raise invalid_parameter("coordinates", f"some of 1 to {size:,}", coordinates)
        return np.sort(np.random.default_rng(seed).choice(size, coordinates, replace=False))
    given = np.array(coordinates, np.int64)
    if given.ndim != 1 or not ((given >= 0) & (given < size)).all():
        raise invalid_parameter("coordinates", f"numbers from 0 to {size - 1:,}", coordinates)
    return given
