"""A sphere around a solution: how much loss and gradient change from its middle to its skin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hogwild.landscape.directions import on_sphere
from hogwild.landscape.surface import Surface, Vector, checked
from hogwild.registry import invalid_parameter


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """How much something changes, in each direction that was tried.

    >>> changes = Changes(np.array([1.0, 2.0, 3.0]))
    >>> changes.mean, round(changes.spread, 3), changes.most
    (2.0, 0.816, 3.0)
    """

    each: Vector

    @property
    def mean(self) -> float:
        """Over the directions."""
        return float(self.each.mean())

    @property
    def spread(self) -> float:
        """The standard deviation over the directions."""
        return float(self.each.std())

    @property
    def most(self) -> float:
        """The largest."""
        return float(self.each.max())


@dataclass(frozen=True, slots=True, eq=False)
class Sphere:
    """What changes from the middle of a sphere to points on it.

    ``loss`` is how much it rises, negative where it falls; ``gradient`` is how long (in the 2-norm) the difference of
    the gradients is.
    """

    radius: float
    p: float
    loss: Changes
    gradient: Changes


def sphere(
    surface: Surface, at: Vector, radius: float, p: float = 2, directions: int = 32, seed: int = 0
) -> Sphere:  # fmt: skip
    """Look at points at a distance of ``radius`` in the p-norm (1, 2 or infinity), in random directions.

    The ``most`` over the directions is that of those which were tried: in many dimensions hardly any of them is near
    the steepest, which :func:`sharpness` climbs and :func:`spectrum` finds.

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
