"""Analysis of the objective around a solution: slope, curvature and slices. Its entry is ``surface``."""

from __future__ import annotations

from hogwild.landscape.coordinate_sensitivity import Sensitivity, sensitivity
from hogwild.landscape.hessian_spectrum import Spectrum, spectrum
from hogwild.landscape.hessian_trace import Trace, trace
from hogwild.landscape.loss_slices import Line, Plane, line, plane
from hogwild.landscape.quadratic import Quadratic
from hogwild.landscape.sharpness import Sharpness, sharpness
from hogwild.landscape.sphere_profile import Changes, Sphere, sphere
from hogwild.landscape.surface import Surface, surface
from hogwild.landscape.trajectory import Path, trajectory
from hogwild.landscape.trajectory_pca import PathPlane, path_plane

__all__ = [
    "Changes", "Line", "Path", "PathPlane", "Plane", "Quadratic", "Sensitivity", "Sharpness", "Spectrum", "Sphere",
    "Surface", "Trace", "line", "path_plane", "plane", "sensitivity", "sharpness", "spectrum", "sphere", "surface",
    "trace", "trajectory",
]  # fmt: skip
