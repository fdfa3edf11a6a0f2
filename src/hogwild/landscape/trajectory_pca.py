"""The plane that shows most of a path, and the path on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.errors import ParameterError
from hogwild.landscape.loss_slices import Plane, over
from hogwild.landscape.surface import Surface, Vector, checked
from hogwild.landscape.trajectory import Path
from hogwild.registry import invalid_parameter

STRAIGHT = 1e-9  # width against length of a path that is no more than rounding


@dataclass(frozen=True, slots=True, eq=False)
class PathPlane:
    """A plane through the end of a path, and where on it the path goes: ``x`` and ``y`` of each of its points.

    ``explained`` is which shares of the squared distances from the end lie along its two directions.
    """

    plane: Plane
    x: Vector
    y: Vector
    explained: tuple[float, float]


def path_plane(surface: Surface, path: Any, points: int = 21, margin: float = 0.2) -> PathPlane:
    """Look at the plane through the last point of a path that the others are nearest to.

    It is spanned by the first two principal components of the differences from the last point (Li et al. 2018), each of
    length 1; other points are projected onto it. ``path`` is a :class:`Path`, or vectors one below the other. The
    plane reaches beyond the path by a ``margin``, a share of its width.

    >>> from hogwild.landscape.quadratic import Quadratic
    >>> found = path_plane(Quadratic(np.diag([1.0, 2.0, 3.0])), [[3.0, 0, 0], [1, 1, 0], [0, 0, 0]], points=5)
    >>> sum(found.explained), found.plane.losses.shape
    (1.0, (5, 5))
    """
    given = path.points if isinstance(path, Path) else path
    vectors = np.array([checked(surface, each, "path") for each in given])
    if len(vectors) < 3:
        raise invalid_parameter("path", "at least three points", len(vectors))
    if points < 2:
        raise invalid_parameter("points", "at least 2", points)
    if surface.size < 2:
        raise ParameterError("One parameter alone spans no plane: look at line() instead.")
    centre = vectors[-1]
    away = vectors - centre
    across, up, explained = _components(away)
    x, y = away @ across, away @ up
    reach = max(float(np.ptp(x)), float(np.ptp(y)))
    xs, ys = (_around(places, points, margin, reach) for places in (x, y))
    return PathPlane(over(surface, centre, across, up, xs, ys), x, y, explained)


def _components(away: NDArray[np.float64]) -> tuple[Vector, Vector, tuple[float, float]]:
    """The two directions that most of it is along, the largest number of each positive, and how much that is."""
    _, sizes, ways = np.linalg.svd(away, full_matrices=False)
    if not sizes[0]:
        raise ParameterError("All points of the path are the same: it spans no plane.")
    across, up = (way * np.sign(way[np.abs(way).argmax()]) for way in ways[:2])
    shares = sizes[:2] ** 2 / (sizes**2).sum()
    return across, up, (float(shares[0]), float(shares[1]))


def _around(places: Vector, points: int, margin: float, reach: float) -> Vector:
    """So many places across a path and a margin; of a straight path, without width, across as much as its length."""
    width = float(np.ptp(places))
    if width <= STRAIGHT * reach:
        return np.linspace(-reach / 2, reach / 2, points)
    return np.linspace(places.min() - margin * width, places.max() + margin * width, points)
