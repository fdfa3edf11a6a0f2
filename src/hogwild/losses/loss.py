"""Losses: a value and a derivative of scores, of one output or of several classes.

Both losses fill ``slopes`` with the derivative by each score, and return the loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from math import exp, log
from numbers import Real
from types import FunctionType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hogwild.errors import ParameterError
from hogwild.jit import bind, raises, with_guard
from hogwild.registry import check_arguments, invalid_parameter, quoted_list

SIGNATURE = "(z, y) -> (loss, derivative)"  # of a loss of the user's
TRIED = (0.5, 1.0)  # score and label for which such a function is tried

Floats = NDArray[np.floating[Any]]
# Labels that a loss is for. With "any", which a function of the user's has, the labels -1 and 1 are classes, and all
# others are numbers.
Targets = Literal["classes", "real", "counts", "any"]
Link = Literal["identity", "sigmoid", "huber", "exp", "none"]


def fully(slope: float) -> float:
    """Return 1, the relative curvature of a loss with constant or unknown curvature."""
    return 1.0


@dataclass(frozen=True, slots=True)
class Loss:
    """Loss of one score ``z`` for one label ``y``.

    ``function(z, y, parameter)`` returns the loss and its derivative by ``z``. The function is compiled into every
    kernel, so it is plain arithmetic on three floats. Labels of ``classes`` are -1 and 1.
    """

    name: str
    function: Callable[[float, float, float], tuple[float, float]]
    targets: Targets
    parameter: float = 0.0
    # Conversion of a score to a probability ("classes") or to a prediction ("real", "counts").
    link: Link = "none"
    # Approximate upper bound of the second derivative, which limits the step size.
    curvature: float = 1.0
    # Curvature relative to ``curvature``, as a function of the derivative.
    bend: Callable[[float], float] = fully
    # Whether the derivative jumps, so that the curvature has no bound.
    has_kink: bool = False
    # Proximal operator, as in :mod:`hogwild.losses.proximal`; None if it is found by bisection.
    prox: Callable[[float, float, float, float, float], float] | None = None
    # Standard deviation of scores that the default penalty allows for. A margin of 1 satisfies most losses of classes.
    score_scale: float = 1.0
    # Whether the function belongs to this package, so that its machine code may be cached on disk.
    ours: bool = True

    def __post_init__(self) -> None:
        """Refuse a function that raises."""
        if raises(self.function):
            raise ParameterError(
                f"The loss {self.name} raises an exception (by 'raise' or 'assert', in it or in what it calls), "
                "which compiled code cannot pass on. Return nan instead: the run then ends with an error."
            )

    def __call__(self, z: float, y: float) -> tuple[float, float]:
        """Return the loss and its derivative, computed in plain Python.

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
        """Return the loss with another parameter (a width, a quantile)."""
        return replace(self, parameter=parameter)


def _ignoring_parameter(z: float, y: float, parameter: float) -> tuple[float, float]:
    return theirs(z, y)  # type: ignore[name-defined, no-any-return]  # noqa: F821  (bound below)


def _nan_for_exceptions(z: float, y: float, parameter: float) -> tuple[float, float]:
    """Return NaN where the compiled function fails by itself, as in ``0.0**-1`` or beyond the end of a list.

    A kernel may hold a lock or a turn here, for which other workers wait.
    """
    try:
        value, slope = theirs(z, y)  # type: ignore[name-defined]  # noqa: F821  (bound below)
        return 1.0 * value, 1.0 * slope  # floats, as NaN is
    except Exception:
        return np.nan, np.nan


def own(function: Callable[[float, float], tuple[float, float]], targets: Targets = "any") -> Loss:
    """Return a loss made of the user's Python function ``(z, y) -> (loss, derivative)``.

    Parameters
    ----------
    function : callable
        Function of a row's score and label, which returns the loss and its derivative by the score. It is compiled, so
        it is plain arithmetic with functions of :mod:`math` and NumPy.
    targets : {"any", "classes", "real", "counts"}, default "any"
        Labels that the loss is for. Labels of "classes" reach the function as -1 and 1, whatever they are in the data;
        of more than two classes, each is trained against the rest. Other labels are numbers to predict, and are passed
        unchanged. With "any", labels that are -1 and 1 are classes, and others are numbers.

    Returns
    -------
    Loss
        Loss that problems and estimators take.

    Raises
    ------
    ParameterError
        If the function does not take two numbers, does not return two, or has a statement ``raise`` or ``assert``.

    Examples
    --------
    >>> absolute = own(lambda z, y: (abs(z - y), 1.0 if z > y else -1.0))
    >>> absolute(3.0, 1.0)
    (2.0, 1.0)
    """
    if targets not in get_args(Targets):
        raise invalid_parameter("targets", "one of " + quoted_list(get_args(Targets)), targets)
    name = getattr(function, "__name__", "own").strip("<>")
    if not isinstance(function, FunctionType) and not type(function).__module__.startswith("numba."):
        raise ParameterError(
            f"The loss {name} must be a function {SIGNATURE} written with 'def' or 'lambda', because it is compiled. "
            f"Got an object of the class {type(function).__name__!r} instead: write a function that has its numbers."
        )
    return _own(function, targets)


@cache
def _own(function: Callable[[float, float], tuple[float, float]], targets: Targets) -> Loss:
    name = function.__name__.strip("<>")
    check_arguments("loss", function, 2, SIGNATURE)
    try:
        found = function(*TRIED)
    except Exception as error:
        raise ParameterError(
            f"The loss {name} fails for the score {TRIED[0]} and the label {TRIED[1]}: {error}. It must be a function "
            f"{SIGNATURE} of two numbers."
        ) from error
    if not isinstance(found, (tuple, list)) or len(found) != 2 or not all(isinstance(each, Real) for each in found):
        raise ParameterError(
            f"The loss {name} must be a function {SIGNATURE} that returns two numbers, the loss and its derivative by "
            f"the score. For the score {TRIED[0]} and the label {TRIED[1]} it returns {found!r}."
        )
    plain, guarded = (bind(template, theirs=function) for template in (_ignoring_parameter, _nan_for_exceptions))
    return Loss(name, with_guard(plain, guarded), targets, link="identity", ours=False)


def one_vs_rest(scores: Floats, y: int, parameter: float, class_weights: Floats, slopes: NDArray[np.float64]) -> float:
    """Return the sum over the classes of a two-class loss of this class (1) against all others (-1).

    The weight of a class applies where it is the positive class, not where it is among the rest, as in scikit-learn.
    """
    total = 0.0
    for k in range(scores.size):
        # ``loss`` is bound when the kernel is compiled.
        value, slope = loss(float(scores[k]), 1.0 if k == y else -1.0, parameter)  # type: ignore[name-defined]  # noqa: F821
        weight = class_weights[k] if k == y else 1.0
        slopes[k] = weight * slope
        total += weight * value
    return total


def softmax(scores: Floats, y: int, parameter: float, class_weights: Floats, slopes: NDArray[np.float64]) -> float:
    """Return -log of the probability that softmax assigns to the label's class."""
    largest = scores[0]
    for k in range(1, scores.size):
        largest = max(largest, scores[k])
    total = 0.0
    for k in range(scores.size):
        slopes[k] = exp(float(scores[k] - largest))
        total += slopes[k]
    weight = float(class_weights[y])
    for k in range(scores.size):
        slopes[k] *= weight / total
    slopes[y] -= weight
    return weight * (log(total) + float(largest - scores[y]))
