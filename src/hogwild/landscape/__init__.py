"""The ground around a solution: how steep, how bent, how it looks from above. ``hogwild.landscape.surface`` first."""

from __future__ import annotations

from hogwild.landscape.ascents import Sharpness, sharpness
from hogwild.landscape.hutchinson import Trace, trace
from hogwild.landscape.lanczos import Spectrum, spectrum
from hogwild.landscape.path_planes import PathPlane, path_plane
from hogwild.landscape.paths import Path, trajectory
from hogwild.landscape.quadratic import Quadratic
from hogwild.landscape.sensitivities import Sensitivity, sensitivity
from hogwild.landscape.slices import Line, Plane, line, plane
from hogwild.landscape.spheres import Changes, Sphere, sphere
from hogwild.landscape.surfaces import Surface, surface

__all__ = [
    "Changes", "Line", "Path", "PathPlane", "Plane", "Quadratic", "Sensitivity", "Sharpness", "Spectrum", "Sphere",
    "Surface", "Trace", "line", "path_plane", "plane", "sensitivity", "sharpness", "spectrum", "sphere", "surface",
    "trace", "trajectory",
]  # fmt: skip
