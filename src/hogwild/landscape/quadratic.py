"""Quadratic surface with known derivatives, for tests and examples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hogwild.landscape.surface import Vector
from hogwild.registry import invalid_parameter


@dataclass(frozen=True, slots=True, eq=False)
class Quadratic:
    """Quadratic form ``x . matrix x / 2`` of a symmetric matrix, its Hessian: a bowl, a trough or a saddle around zero.

    The whole vector is one block, and every unit is 1.

    >>> bowl = Quadratic(np.diag([4.0, 1.0]))
    >>> bowl.loss(np.array([1.0, 2.0])), bowl.gradient(np.array([1.0, 2.0]))
    (4.0, array([4., 2.]))
    """

    matrix: Any

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.allclose(matrix, matrix.T):
            raise invalid_parameter("matrix", "square and symmetric", f"one of shape {matrix.shape}")
        object.__setattr__(self, "matrix", matrix)

    @property
    def size(self) -> int:
        """The number of parameters."""
        return len(self.matrix)

    @property
    def blocks(self) -> tuple[slice, ...]:
        """The only block, all parameters."""
        return (slice(0, self.size),)

    def loss(self, vector: Vector) -> float:
        """Compute half of ``x . matrix x``."""
        return float(vector @ self.matrix @ vector) / 2

    def gradient(self, vector: Vector) -> Vector:
        """Compute the matrix times x."""
        return np.asarray(self.matrix @ vector)

    def times(self, vector: Vector, direction: Vector) -> Vector:
        """Compute the matrix times the direction, which is the same at every vector."""
        return np.asarray(self.matrix @ direction)

    def units(self, vector: Vector) -> Vector:
        """Return 1 for each parameter."""
        return np.ones(self.size)
