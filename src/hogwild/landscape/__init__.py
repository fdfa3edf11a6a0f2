"""Analysis of the objective around a solution: slope, curvature and slices. Its entry is ``surface``."""

from __future__ import annotations

from hogwild.landscape.hessian import Spectrum, Trace, spectrum, trace
from hogwild.landscape.loss_slices import Line, Plane, line, matching_radius, mean_square, plane
from hogwild.landscape.sharpness import (
    Changes,
    Neighbourhood,
    Sensitivity,
    Sharpness,
    ball,
    sensitivity,
    sharpness,
    sphere,
    summary,
)
from hogwild.landscape.surface import Quadratic, Surface, surface
from hogwild.landscape.trajectory import Path, PathPlane, path_plane, trajectory

__all__ = [
    "Changes", "Line", "Neighbourhood", "Path", "PathPlane", "Plane", "Quadratic", "Sensitivity", "Sharpness",
    "Spectrum", "Surface", "Trace", "ball", "line", "matching_radius", "mean_square", "path_plane", "plane",
    "sensitivity", "sharpness", "spectrum", "sphere", "summary", "surface", "trace", "trajectory",
]  # fmt: skip
