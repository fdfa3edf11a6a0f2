"""Interface of update rules, and the arithmetic that rules share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A Python integer 1 would turn float32 arithmetic into float64.
ZERO, ONE = np.float32(0), np.float32(1)
# Numbers below 1e-38 have few digits, and processors take a hundred times as long for each operation on them.
TINY = np.float32(1e-36)


State = tuple[Any, ...]
"""Arrays of rows, with one row for each coordinate."""

Table = NDArray[np.float32]
"""Rows of coordinates, as compiled functions get them."""

Constants = tuple[np.float32, ...]
"""Constants of a rule, as compiled functions get them."""


class Rule(ABC):
    """Update rule, which turns a gradient into an update of one coordinate.

    A rule derives from this class and defines ``initial`` and ``step``; all other members have defaults. Each
    coordinate owns a short row of the state: its value first, then the rule's memory of the coordinate. A term steps
    only its own coordinates, so every rule is lazily sparse.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def initial(self) -> tuple[float, ...]:
        """The initial row of a coordinate; its first number is the value."""

    @property
    @abstractmethod
    def step(self) -> Callable[..., None]:
        """The function ``step(state, p, g, rate, l1, l2, constants)`` that is compiled into the kernels.

        The function applies the gradient ``g`` to row ``p`` in plain float32 arithmetic. It also applies this term's
        share of the penalty ``l1 |w| + l2 w^2 / 2``.
        """

    @property
    def constants(self) -> tuple[float, ...]:
        """Constants of the rule that ``step`` receives, at least one."""
        return (0.0,)

    @property
    def skips_zero_gradient(self) -> bool:
        """Whether a zero gradient changes nothing, so that a satisfied row can be skipped."""
        return False

    @property
    def self_annealing(self) -> bool:
        """Whether the rule itself reduces its steps, so that one step size suits runs of any length."""
        return False

    @property
    def usual_schedule(self) -> str:
        """The name of the schedule with which the rule goes where the user gives none."""
        return "cooldown" if self.self_annealing else "cosine"

    @property
    def uniform_step(self) -> bool:
        """Whether all coordinates move by the same multiple of their gradient, so that L2 is one common factor."""
        return False

    @property
    def effective_step(self) -> Callable[..., Any] | None:
        """The function ``effective_step(state, p, rate, constants)``, which returns the change per unit of gradient.

        Workers can have replicas of hot coordinates only with a rule that defines this function.
        """
        return None

    @property
    def position_columns(self) -> tuple[int, ...]:
        """The columns of a row that hold a location, and change when the coordinate is transformed from outside."""
        return (0,)

    @property
    def accumulator_columns(self) -> tuple[int, ...]:
        """The columns of a row that add up squared gradients, and count in full where a share of a step counts."""
        return ()

    @property
    def shrinks_at_once(self) -> bool:
        """Whether steps of a coordinate shrink from its first visit on, so that late changes of rare ones are fine."""
        return False

    @property
    def adds_up(self) -> bool:
        """Whether changes of the rule's state can be added. Others, such as Adam's moments, are means."""
        return len(self.initial) == 1 or self.self_annealing

    @property
    def single_worker(self) -> bool:
        """Whether only one worker may use the rule."""
        return False

    @property
    def has_duals(self) -> bool:
        """Whether the rule has a dual variable for each row, and chooses the lengths of its steps itself."""
        return False

    @property
    def step_size(self) -> str:
        """The choice of a term's step size: "scheduled", or a name in ``hogwild.kernels.linear_build``."""
        return "scheduled"

    @property
    def precision(self) -> str:
        """The type of the numbers of a row."""
        return "float32"

    @property
    def initial_intercept(self) -> tuple[float, ...]:
        """The initial row of the intercept."""
        return self.initial

    @property
    def intercept_precision(self) -> str:
        """The type of the numbers of the intercept's row."""
        return self.precision

    @property
    def average_from(self) -> int:
        """The number of the update from which the rule averages its iterates itself; 0 is never."""
        return 0

    @property
    def track_objective(self) -> bool:
        """Whether the rule sums the objective of the terms that it steps through."""
        return False

    def values(self, state: State) -> State:
        """Return the parameters of a run: the first column of each part of the state, not copied."""
        return tuple(part[:, :1] for part in state)

    def take_objective(self, state: State) -> float:
        """Return the sum of the objective over the terms since the last call, with ``track_objective``."""
        return 0.0


def shrink(w: np.float32, rate: np.float32, l1: np.float32, l2: np.float32) -> np.float32:
    """Return ``w`` after a proximal step of size ``rate`` on ``l1 |w| + l2 w^2 / 2``, which never crosses zero.

    >>> float(shrink(1.0, 0.5, 0.0, 2.0)), float(shrink(0.3, 0.5, 1.0, 0.0))
    (0.5, 0.0)
    """
    # If a penalty is zero at compile time, the compiler omits its branch.
    if l1 != 0:
        pull = rate * l1
        w = max(w - pull, ZERO) + min(w + pull, ZERO)
    if l2 != 0:
        w = w / (ONE + rate * l2)
    return w


def settle(x: np.float32) -> np.float32:
    """Return ``x``, or 0 where a value that decays has come so near to it that arithmetic becomes slow.

    >>> [float(settle(np.float32(x))) for x in (-0.5, -1e-40, float("nan"))]
    [-0.5, 0.0, nan]
    """
    return ZERO if abs(x) < TINY else x
