"""Analysis of the objective around a solution: slope, curvature and slices. Its entry is ``surface``."""

from __future__ import annotations

from hogwild.landscape.hessian import Spectrum, Trace, spectrum, trace
from hogwild.landscape.loss_slices import Line, Plane, line, plane
from hogwild.landscape.sharpness import Changes, Sensitivity, Sharpness, Sphere, sensitivity, sharpness, sphere
from hogwild.landscape.surface import Quadratic, Surface, surface
from hogwild.landscape.trajectory import Path, PathPlane, path_plane, trajectory

__all__ = [
    "Changes", "Line", "Path", "PathPlane", "Plane", "Quadratic", "Sensitivity", "Sharpness", "Spectrum", "Sphere",
    "Surface", "Trace", "line", "path_plane", "plane", "sensitivity", "sharpness", "spectrum", "sphere", "surface",
    "trace", "trajectory",
]  # fmt: skip
