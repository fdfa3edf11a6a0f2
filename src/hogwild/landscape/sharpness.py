"""Sharpness: the highest loss within a small ball, found by gradient ascent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hogwild.landscape.directions import on_sphere
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

    >>> from hogwild.landscape.quadratic import Quadratic
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
