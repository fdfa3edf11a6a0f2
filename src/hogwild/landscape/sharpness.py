"""Sharpness: how high the loss gets within a small ball, found by climbing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hogwild.landscape.directions import on_sphere
from hogwild.landscape.surface import Surface, Vector, checked
from hogwild.registry import invalid_parameter


@dataclass(frozen=True, slots=True, eq=False)
class Sharpness:
    """The highest loss that was met within ``rho`` of a place, and where."""

    rho: float
    loss: float  # in the middle
    highest: float
    where: Vector

    @property
    def rise(self) -> float:
        """How much higher that is than in the middle: what SAM (Foret et al. 2021) calls sharpness."""
        return self.highest - self.loss


def sharpness(surface: Surface, at: Vector, rho: float = 0.05, steps: int = 1, seed: int = 0) -> Sharpness:
    """Climb within a ball of the 2-norm, radius ``rho``, as far as that goes.

    One step is SAM's: ``rho`` along the gradient. Each further one goes ``rho`` along the gradient where it is and back
    into the ball; the highest place on the way counts. Where there is no gradient the first step is in a
    random direction, and it takes several steps to find out which way is up.

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
