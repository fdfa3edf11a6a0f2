"""What a loss is: a function of a score and a label, and how its score is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from hogwild.jit import bind

Targets = Literal["classes", "real", "counts"]
Link = Literal["identity", "sigmoid", "huber", "exp", "none"]


def fully(slope: float) -> float:
    """How bent a loss is that is as bent everywhere, or of which no more is known."""
    return 1.0


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss of one score ``z`` against one label ``y``.

    ``function(z, y, parameter)`` returns the loss and its derivative by ``z``. It is compiled into every kernel, so it
    is plain arithmetic on three floats. Labels of ``classes`` are -1 and 1.
    """

    name: str
    function: Callable[[float, float, float], tuple[float, float]]
    targets: Targets
    parameter: float = 0.0
    link: Link = "none"  # how a score becomes a probability ("classes") or a prediction ("real", "counts")
    curvature: float = 1.0  # about the largest second derivative: how far a step along the slope may go
    bend: Callable[[float], float] = fully  # how much of that there is where the slope is such
    ours: bool = True  #   a function of this package, whose machine code may be kept on disk

    def __call__(self, z: float, y: float) -> tuple[float, float]:
        """The loss and its derivative, in plain Python.

        >>> from hogwild.losses import HINGE
        >>> HINGE(0.25, 1.0)
        (0.75, -1.0)
        """
        return self.function(z, y, self.parameter)

    def __str__(self) -> str:
        return f"{self.name}:{self.parameter:g}" if self.parameter else self.name

    def __repr__(self) -> str:
        return f"<loss {self}>"

    def with_parameter(self, parameter: float) -> Loss:
        """The same loss with another constant (a width, a quantile)."""
        return replace(self, parameter=parameter)


def _ignoring_parameter(z: float, y: float, parameter: float) -> tuple[float, float]:
    return theirs(z, y)  # type: ignore[name-defined, no-any-return]  # noqa: F821  (bound below)


@cache
def own(function: Callable[[float, float], tuple[float, float]], targets: Targets = "real") -> Loss:
    """Make a loss of one's own Python function ``(z, y) -> (loss, derivative)``.

    >>> absolute = own(lambda z, y: (abs(z - y), 1.0 if z > y else -1.0))
    >>> absolute(3.0, 1.0)
    (2.0, 1.0)
    """
    name = getattr(function, "__name__", "own").strip("<>")
    return Loss(name, bind(_ignoring_parameter, theirs=function), targets, link="identity", ours=False)
