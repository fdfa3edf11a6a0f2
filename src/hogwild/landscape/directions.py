"""Directions to look in: random ones, of length 1 in some norm or as long as what they are to be compared with."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from hogwild.errors import ParameterError
from hogwild.landscape.surface import Vector
from hogwild.registry import invalid_parameter

NORMS = (1, 2, math.inf)


def on_sphere(chance: np.random.Generator, size: int, p: float = 2) -> Vector:
    """A random direction whose p-norm is 1, uniform on that sphere: for p = 1 a diamond, for infinity a cube.

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
    """The same direction, each of its blocks as long as that block of the parameters is (Li et al. 2018).

    A step along it is the same share of every filter, so that nets whose weights differ in size can be compared. What
    is zero stays where it is.

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
    """A random direction, filter-normalised.

    >>> at = np.array([3.0, 4.0, 0.5])
    >>> direction = random_filters(np.random.default_rng(0), at, [slice(0, 2), slice(2, 3)])
    >>> float(np.linalg.norm(direction[:2])), float(abs(direction[2]))
    (5.0, 0.5)
    """
    return filter_normalised(chance.standard_normal(len(at)), at, blocks)
