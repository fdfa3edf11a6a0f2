"""What is looked at: a number for every vector of parameters, its gradient, and how that bends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hogwild.registry import invalid_parameter

if TYPE_CHECKING:
    from hogwild.landscape.linear_surface import LinearSurface
    from hogwild.landscape.module_surface import ModuleSurface

Vector = NDArray[np.float64]


class Surface(Protocol):
    """A function of vectors of ``size`` numbers: the same for the same vector, however often it is asked."""

    @property
    def size(self) -> int:
        """How many parameters there are."""

    @property
    def blocks(self) -> Sequence[slice]:
        """Which of them belong together: the weights of one output, a filter, a bias. Each is in one block."""

    def loss(self, vector: Vector) -> float:
        """How high it is there."""

    def gradient(self, vector: Vector) -> Vector:
        """Where it rises most, and how much."""

    def times(self, vector: Vector, direction: Vector) -> Vector:
        """The Hessian there times a direction: how the gradient changes that way."""

    def units(self, vector: Vector) -> Vector:
        """How far a move of 1 is along each coordinate, so that coordinates can be compared."""


def surface(problem: Any, data: Any = None) -> LinearSurface | ModuleSurface:
    """What a ``Linear`` or a ``Module`` minimises, as a function of its parameters; on other ``data`` if there is some.

    Nothing about it is random, and nothing of the problem is changed. ``surface.at(run)`` is where a run has ended.

    >>> from hogwild import Linear
    >>> ground = surface(Linear((np.array([[1.0], [3.0]]), [2.0, 4.0]), "squared"))
    >>> ground.size, ground.loss(np.array([1.0, 0.0])), ground.gradient(np.array([1.0, 0.0]))
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


def checked(surface: Surface, at: Any, name: str = "at") -> Vector:
    """A place on a surface, as a vector of the right size.

    >>> from hogwild.landscape.quadratic import Quadratic
    >>> checked(Quadratic(np.eye(2)), [1, 2])
    array([1., 2.])
    """
    vector = np.array(at, np.float64)
    if vector.shape != (surface.size,):
        raise invalid_parameter(name, f"a vector of {surface.size:,} numbers", vector.shape)
    if not np.isfinite(vector).all():
        raise invalid_parameter(name, "a vector of finite numbers", "one that is not")
    return vector
