"""Random directions in parameter space, of unit norm or scaled to the parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from hogwild.errors import ParameterError
from hogwild.landscape.surface import Vector
from hogwild.registry import invalid_parameter

NORMS = (1, 2, math.inf)


def on_sphere(chance: np.random.Generator, size: int, p: float = 2) -> Vector:
    """Draw a random direction of p-norm 1, uniform on the unit sphere: a diamond for p = 1, a cube for infinity.

    >>> direction = on_sphere(np.random.default_rng(0), 5, p=math.inf)
    >>> float(abs(direction).max())
    1.0
    """
    if p == 1:
        drawn = chance.laplace(size=size)
    elif p == 2:
        drawn = chance.standard_normal(size)
    elif p == math.inf:
        drawn = chance.uniform(-1, 1, size)
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


def random_filters(chance: np.random.Generator, at: Vector, blocks: Iterable[slice]) -> Vector:
    """Draw a random direction, filter-normalised (Li et al. 2018).

    >>> at = np.array([3.0, 4.0, 0.5])
    >>> direction = random_filters(np.random.default_rng(0), at, [slice(0, 2), slice(2, 3)])
    >>> float(np.linalg.norm(direction[:2])), float(abs(direction[2]))
    (5.0, 0.5)
    """
    return filter_normalised(chance.standard_normal(len(at)), at, blocks)
