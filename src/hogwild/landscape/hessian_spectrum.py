"""The largest eigenvalues of the Hessian, from products with it alone (Lanczos 1950)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

from hogwild.landscape.directions import on_sphere
from hogwild.landscape.surface import Surface, Vector, checked
from hogwild.registry import invalid_parameter

SMALL = 1e-10  # of the largest eigenvalue: what is left of a product after everything known is taken out of it


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """The largest eigenvalues, falling, and a unit vector (a row of ``vectors``) for each.

    ``residuals`` say how far each is from being one: for some eigenvalue, the difference is no larger.
    """

    values: Vector
    vectors: NDArray[np.float64]
    residuals: Vector
    steps: int  # products with the Hessian that it took


def spectrum(
    surface: Surface, at: Vector, k: int = 5, seed: int = 0, tolerance: float = 1e-6, steps: int | None = None
) -> Spectrum:  # fmt: skip
    """Find the ``k`` largest eigenvalues of the Hessian, by Lanczos' method from a random vector.

    Every new vector is made orthogonal to all before it, twice, which keeps as many vectors as there are ``steps``. It
    ends when all residuals are below ``tolerance`` times the largest eigenvalue by size, or after so many ``steps``
    (without a number: as many as there are parameters, at most 300); ``residuals`` tell. An eigenvalue that several
    directions share is found once for each of them only if the steps go through all of the space.

    >>> from hogwild.landscape.quadratic import Quadratic
    >>> spectrum(Quadratic(np.diag([1.0, 5.0, -7.0, 3.0])), np.zeros(4), k=2).values
    array([5., 3.])
    """
    at = checked(surface, at)
    if not 1 <= k <= surface.size:
        raise invalid_parameter("k", f"from 1 to the number of parameters, {surface.size:,}", k)
    if steps is not None and steps < k:
        raise invalid_parameter("steps", f"at least k, {k}", steps)
    most = min(surface.size, max(300, 2 * k) if steps is None else steps)
    chance = np.random.default_rng(seed)
    known = np.empty((most, surface.size))
    along, beside = np.empty(most), np.empty(most)  # the diagonal, and what is beside it
    known[0] = on_sphere(chance, surface.size)
    for step in range(most):
        product = surface.times(at, known[step])
        along[step] = product @ known[step]
        product = _orthogonal(product, known[: step + 1])
        beside[step] = np.linalg.norm(product)
        values, parts = _largest(along[: step + 1], beside[:step], min(k, step + 1))
        residuals = np.abs(beside[step] * parts[-1])
        size = float(np.abs(along[: step + 1]).max() + beside[: step + 1].max())
        if step + 1 == most or (step + 1 >= k and residuals.max() <= tolerance * np.abs(values).max()):
            break
        if beside[step] <= SMALL * size:  # nothing new is to be had from here: go on from elsewhere
            beside[step] = 0.0
            product = _orthogonal(chance.standard_normal(surface.size), known[: step + 1])
        known[step + 1] = product / np.linalg.norm(product)
    vectors = parts.T @ known[: step + 1]
    return Spectrum(values, vectors, residuals, step + 1)


def _orthogonal(vector: Vector, known: NDArray[np.float64]) -> Vector:
    """What of a vector is in none of these directions; once would leave what was rounded."""
    for _ in range(2):
        vector = vector - known.T @ (known @ vector)
    return vector


def _largest(along: Vector, beside: Vector, k: int) -> tuple[Vector, NDArray[np.float64]]:
    """The largest eigenvalues of a tridiagonal matrix, falling, and their vectors as columns."""
    size = len(along)
    values, vectors = eigh_tridiagonal(along, beside, select="i", select_range=(size - k, size - 1))
    return np.asarray(values[::-1], np.float64), np.asarray(vectors[:, ::-1], np.float64)
