"""Changes of loss and gradient from the centre of a sphere to random points on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hogwild.landscape.directions import on_sphere
from hogwild.landscape.surface import Surface, Vector, checked
from hogwild.registry import invalid_parameter


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

    >>> from hogwild.landscape.quadratic import Quadratic
    >>> found = sphere(Quadratic(3 * np.eye(2)), np.zeros(2), radius=2.0)
    >>> found.loss.mean, found.gradient.most
    (6.0, 6.0)
    """
    at = checked(surface, at)
    if not 0 < radius < float("inf"):
        raise invalid_parameter("radius", "a positive number", radius)
    if directions < 1:
        raise invalid_parameter("directions", "a positive integer", directions)
    chance = np.random.default_rng(seed)
    loss, gradient = surface.loss(at), surface.gradient(at)
    rises, turns = np.empty(directions), np.empty(directions)
    for k in range(directions):
        there = at + radius * on_sphere(chance, surface.size, p)
        rises[k] = surface.loss(there) - loss
        turns[k] = np.linalg.norm(surface.gradient(there) - gradient)
    return Sphere(radius, p, Changes(rises), Changes(turns))
