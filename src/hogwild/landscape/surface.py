"""Surface: the interface of an objective that can be analysed, and a quadratic form with known answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hogwild.registry import invalid_parameter

if TYPE_CHECKING:
    from hogwild.landscape.linear_surface import LinearSurface
    from hogwild.landscape.module_surface import ModuleSurface


Vector = NDArray[np.float64]


class Surface(Protocol):
    """Deterministic function of vectors of ``size`` numbers: equal vectors give equal values at every call."""

    @property
    def size(self) -> int:
        """The number of parameters."""

    @property
    def blocks(self) -> Sequence[slice]:
        """The blocks of parameters: the weights of one output, a filter, or a bias. Each parameter is in one block."""

    def loss(self, vector: Vector) -> float:
        """Compute the loss at a vector."""

    def gradient(self, vector: Vector) -> Vector:
        """Compute the gradient at a vector."""

    def times(self, vector: Vector, direction: Vector) -> Vector:
        """Compute the product of the Hessian at a vector with a direction, which is the gradient's change that way."""

    def units(self, vector: Vector) -> Vector:
        """Return the length of one unit along each coordinate, which makes coordinates comparable."""


def surface(problem: Any, data: object = None) -> LinearSurface | ModuleSurface:
    """Return the objective of a ``Linear`` or a ``Module`` as a function of its parameters, on its data or on ``data``.

    The result is deterministic, and the problem is not changed. ``surface.at(run)`` returns the parameters at the end
    of a run.

    >>> from hogwild import Linear
    >>> objective = surface(Linear((np.array([[1.0], [3.0]]), [2.0, 4.0]), "squared", l2=0))
    >>> objective.size, objective.loss(np.array([1.0, 0.0])), objective.gradient(np.array([1.0, 0.0]))
    (2, 0.5, array([-2., -1.]))
    """
    if problem.terms == "batches":
        from hogwild.landscape.module_surface import ModuleSurface

        return ModuleSurface(problem, data)
    from hogwild.landscape.linear_surface import LinearSurface
    from hogwild.problems.linear import Linear

    if not isinstance(problem, Linear):
        raise invalid_parameter("problem", "a Linear or a Module", type(problem).__name__)
    return LinearSurface(problem, data)


def checked(surface: Surface, at: ArrayLike, name: str = "at") -> Vector:
    """Check a point on a surface, and return it as a vector of the right size.

    >>> from hogwild.landscape.surface import Quadratic
    >>> checked(Quadratic(np.eye(2)), [1, 2])
    array([1., 2.])
    """
    vector = np.array(at, np.float64)
    if vector.shape != (surface.size,):
        raise invalid_parameter(name, f"a vector of {surface.size:,} numbers", vector.shape)
    if not np.isfinite(vector).all():
        raise invalid_parameter(name, "a vector of finite numbers", "one that is not")
    return vector


@dataclass(frozen=True, slots=True, eq=False)
class Quadratic:
    """Quadratic form ``x' matrix x / 2`` of a symmetric matrix, its Hessian: a bowl, a trough or a saddle around zero.

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
