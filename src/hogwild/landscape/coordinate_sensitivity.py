"""Sensitivity of the loss to single coordinates, each moved while all others are fixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.landscape.surface import Surface, Vector, checked
from hogwild.registry import invalid_parameter


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
    units: Any = None, seed: int = 0,
) -> Sensitivity:  # fmt: skip
    """Measure the rise of the loss when one coordinate at a time moves by ``radius`` units up and down.

    Units make coordinates comparable; they are ``surface.units`` unless the caller gives others. The unit of a weight
    of a ``Linear`` is one over the standard deviation of its feature. Such a move equals a move of ``radius`` after all
    features are scaled to a deviation of 1: scores change by ``radius`` times the scaled feature. The unit of an
    intercept, and of a feature without variance, is 1. The unit of a parameter of a ``Module`` is the root mean square
    of its tensor (the norm over the root of the size). It is 1 where that is zero.

    Each coordinate costs two evaluations of the loss on all data. ``coordinates`` lists the coordinates, or is the
    number of random ones.

    >>> from hogwild.landscape.quadratic import Quadratic
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
