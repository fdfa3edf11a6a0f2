"""Plane that contains most of a trajectory (principal components), and the trajectory projected onto it."""

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

STRAIGHT = 1e-9  # ratio of width to length below which a path counts as straight; smaller widths are rounding errors


@dataclass(frozen=True, slots=True, eq=False)
class PathPlane:
    """Plane through the end of a path, and the projection of each point of the path onto it, ``x`` and ``y``.

    ``explained`` holds the shares of the squared distances from the end that lie along the two directions.
    """

    plane: Plane
    x: Vector
    y: Vector
    explained: tuple[float, float]


def path_plane(surface: Surface, path: Any, points: int = 21, margin: float = 0.2) -> PathPlane:
    """Evaluate the loss on the plane through the last point of a path that is nearest to its other points.

    The first two principal components of the differences from the last point span the plane (Li et al. 2018). Both
    directions have length 1, and other points are projected onto the plane. ``path`` is a :class:`Path`, or one vector
    per row. The plane extends beyond the path by ``margin`` times its width on each side.

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
    """Return the first two principal directions, the largest entry of each positive, and their shares."""
    _, sizes, ways = np.linalg.svd(away, full_matrices=False)
    if not sizes[0]:
        raise ParameterError("All points of the path are the same: it spans no plane.")
    across, up = (way * np.sign(way[np.abs(way).argmax()]) for way in ways[:2])
    shares = sizes[:2] ** 2 / (sizes**2).sum()
    return across, up, (float(shares[0]), float(shares[1]))


def _around(places: Vector, points: int, margin: float, reach: float) -> Vector:
    """Return ``points`` ticks across a path and its margin, or across its length if the path has no width."""
    width = float(np.ptp(places))
    if width <= STRAIGHT * reach:
        return np.linspace(-reach / 2, reach / 2, points)
    return np.linspace(places.min() - margin * width, places.max() + margin * width, points)
