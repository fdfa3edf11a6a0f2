"""Trace and largest eigenvalues of the Hessian of an objective, from products of the Hessian with vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

from hogwild.landscape.loss_slices import on_sphere
from hogwild.landscape.surface import Surface, Vector, checked
from hogwild.registry import invalid_parameter


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Estimate of the sum of all eigenvalues: the value of each probe, their mean and its standard error."""

    each: Vector

    @property
    def value(self) -> float:
        """The estimate: the mean over all probes."""
        return float(self.each.mean())

    @property
    def error(self) -> float:
        """The standard error. Two standard errors to either side contain the true trace in about 95% of cases."""
        return float(self.each.std(ddof=1) / np.sqrt(len(self.each)))


def trace(surface: Surface, at: Vector, probes: int = 64, seed: int = 0) -> Trace:
    """Estimate the trace of the Hessian by ``z' H z`` for vectors z of random signs.

    The estimate is exact for a diagonal Hessian. Each probe costs one product with the Hessian.

    >>> from hogwild.landscape.surface import Quadratic
    >>> found = trace(Quadratic(np.diag([4.0, 1.0])), np.zeros(2), probes=3)
    >>> found.value, found.error
    (5.0, 0.0)
    """
    at = checked(surface, at)
    if probes < 2:
        raise invalid_parameter("probes", "at least 2", probes)
    rng = np.random.default_rng(seed)
    each = np.empty(probes)
    for k in range(probes):
        signs = rng.choice([-1.0, 1.0], surface.size)
        each[k] = signs @ surface.times(at, signs)
    return Trace(each)


# Norm of the remainder of a product after orthogonalisation, relative to the largest eigenvalue, below which the
# remainder is rounding error.
SMALL = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """The largest eigenvalues in decreasing order, and a unit eigenvector (a row of ``vectors``) for each.

    ``residuals`` bound the errors: for each value there is an eigenvalue no further away than its residual.
    """

    values: Vector
    vectors: NDArray[np.float64]
    residuals: Vector
    steps: int  # number of products with the Hessian


def spectrum(
    surface: Surface, at: Vector, k: int = 5, seed: int = 0, tolerance: float = 1e-6, steps: int | None = None
) -> Spectrum:  # fmt: skip
    """Find the ``k`` largest eigenvalues of the Hessian, by the Lanczos method from a random vector.

    Every new vector is orthogonalised twice against all earlier ones, which stores one vector per step. The iteration
    ends when all residuals are below ``tolerance`` times the largest found eigenvalue by size, or after ``steps``
    steps. The default of ``steps`` is the number of parameters, or the larger of 300 and ``2 * k`` if that is less. The
    ``residuals`` of the result tell which of both ended the iteration. A multiple eigenvalue is found with its full
    multiplicity only if the steps span the whole space.

    >>> from hogwild.landscape.surface import Quadratic
    >>> spectrum(Quadratic(np.diag([1.0, 5.0, -7.0, 3.0])), np.zeros(4), k=2).values
    array([5., 3.])
    """
    at = checked(surface, at)
    if not 1 <= k <= surface.size:
        raise invalid_parameter("k", f"from 1 to the number of parameters, {surface.size:,}", k)
    if steps is not None and steps < k:
        raise invalid_parameter("steps", f"at least k, {k}", steps)
    most = min(surface.size, max(300, 2 * k) if steps is None else steps)
    rng = np.random.default_rng(seed)
    known = np.empty((most, surface.size))
    diagonal, off_diagonal = np.empty(most), np.empty(most)  # diagonal and off-diagonal of the tridiagonal matrix
    known[0] = on_sphere(rng, surface.size)
    for step in range(most):
        product = surface.times(at, known[step])
        diagonal[step] = product @ known[step]
        product = _orthogonal(product, known[: step + 1])
        off_diagonal[step] = np.linalg.norm(product)
        values, parts = _largest(diagonal[: step + 1], off_diagonal[:step], min(k, step + 1))
        residuals = np.abs(off_diagonal[step] * parts[-1])
        size = float(np.abs(diagonal[: step + 1]).max() + off_diagonal[: step + 1].max())
        if step + 1 == most or (step + 1 >= k and residuals.max() <= tolerance * np.abs(values).max()):
            break
        # The known vectors span an invariant subspace. A random vector orthogonal to it continues the iteration.
        if off_diagonal[step] <= SMALL * size:
            off_diagonal[step] = 0.0
            product = _orthogonal(rng.standard_normal(surface.size), known[: step + 1])
        known[step + 1] = product / np.linalg.norm(product)
    vectors = parts.T @ known[: step + 1]
    return Spectrum(values, vectors, residuals, step + 1)


def _orthogonal(vector: Vector, known: NDArray[np.float64]) -> Vector:
    """Return the part of a vector orthogonal to all known vectors. A second pass removes rounding errors."""
    for _ in range(2):
        vector = vector - known.T @ (known @ vector)
    return vector


def _largest(diagonal: Vector, off_diagonal: Vector, k: int) -> tuple[Vector, NDArray[np.float64]]:
    """Return the ``k`` largest eigenvalues of a tridiagonal matrix, in decreasing order, and vectors as columns."""
    size = len(diagonal)
    values, vectors = eigh_tridiagonal(diagonal, off_diagonal, select="i", select_range=(size - k, size - 1))
    return np.asarray(values[::-1], np.float64), np.asarray(vectors[:, ::-1], np.float64)
