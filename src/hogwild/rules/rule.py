"""The contract of update rules, and the shrinkage that they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

ZERO, ONE = np.float32(0), np.float32(1)  # a bare 1 would turn float32 arithmetic into float64


State = tuple[Any, ...]
"""Arrays of rows, one row for each coordinate."""


class Rule(ABC):
    """How a gradient becomes an update of one coordinate.

    A rule derives from this class and says ``initial`` and ``step``; all else has a default. Each coordinate owns a
    short row of the state: its value first, then what the rule remembers about it. Only the coordinates of a term are
    stepped, so every rule is lazily sparse.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def initial(self) -> tuple[float, ...]:
        """What a fresh row of state holds; the first number is the value itself."""

    @property
    @abstractmethod
    def step(self) -> Callable[..., None]:
        """The function ``step(state, p, g, rate, l1, l2, constants)`` that is compiled into the kernels.

        It applies the gradient ``g`` to row ``p``, together with this term's share of the penalty
        ``l1 |w| + l2 w^2 / 2``, in plain float32 arithmetic.
        """

    @property
    def constants(self) -> tuple[float, ...]:
        """Constants of the rule, as ``step`` gets them; at least one."""
        return (0.0,)

    @property
    def skips_zero_gradient(self) -> bool:
        """Whether a zero gradient changes nothing, so that a satisfied row can be skipped."""
        return False

    @property
    def self_annealing(self) -> bool:
        """Whether steps get smaller by themselves, so that one step size suits runs of any length."""
        return False

    @property
    def uniform_step(self) -> bool:
        """Whether all coordinates move by the same multiple of their gradient, so that L2 is one common factor."""
        return False

    @property
    def effective_step(self) -> Callable[..., Any] | None:
        """The function ``effective_step(state, p, rate, constants)``: how far a unit of gradient moves a coordinate.

        Workers can have replicas of frequent coordinates only with a rule that says so.
        """
        return None

    @property
    def position_columns(self) -> tuple[int, ...]:
        """The entries of a row that hold a location, and change when the coordinate is moved from outside."""
        return (0,)

    @property
    def single_worker(self) -> bool:
        """Whether only one worker may use it."""
        return False

    @property
    def step_size(self) -> str:
        """How large the step of a term is: "scheduled", or a name in ``hogwild.kernels.step_size``."""
        return "scheduled"

    @property
    def precision(self) -> str:
        """The type of numbers in a row."""
        return "float32"

    @property
    def initial_intercept(self) -> tuple[float, ...]:
        """What a fresh row of the intercept holds."""
        return self.initial

    @property
    def intercept_precision(self) -> str:
        """The type of numbers in the row of the intercept."""
        return self.precision

    @property
    def average_from(self) -> int:
        """The update from which the rule averages its iterates by itself; 0 is never."""
        return 0

    @property
    def track_objective(self) -> bool:
        """Whether the rule adds up the objective of the terms it steps through."""
        return False

    def values(self, state: State) -> State:
        """The parameters that a run returns: the first column of each part of the state, not copied."""
        return tuple(part[:, :1] for part in state)

    def take_objective(self, state: State) -> float:
        """The sum of the objective over the terms since the last call, with ``track_objective``."""
        return 0.0


def shrink(w: Any, rate: Any, l1: Any, l2: Any) -> Any:
    """Where ``l1 |w| + l2 w^2 / 2`` pulls ``w`` in a step of size ``rate``: exactly, so that no step overshoots zero.

    >>> float(shrink(1.0, 0.5, 0.0, 2.0)), float(shrink(0.3, 0.5, 1.0, 0.0))
    (0.5, 0.0)
    """
    # Where a penalty is known to be zero when this is compiled, its part of the code is not there.
    if l1 != 0:
        pull = rate * l1
        w = max(w - pull, ZERO) + min(w + pull, ZERO)
    if l2 != 0:
        w = w / (ONE + rate * l2)
    return w
