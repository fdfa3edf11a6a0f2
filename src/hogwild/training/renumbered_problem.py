"""Problem whose features are numbered by frequency while it is trained: frequent ones lie together in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.problems.problem import RowProblem, State
from hogwild.rules.rule import Rule


@dataclass(frozen=True, eq=False)
class RenumberedProblem:
    """Problem as it is trained, and the features of the original problem in the order of their new numbers.

    Features that no row has are not trained, and keep their initial values.
    """

    problem: RowProblem
    by_rank: Array | None = None  # None where features keep their numbers
    features: int = 0  # number of features of the original problem
    initial: tuple[float, ...] = ()  # row of the rule's state for a parameter that is not trained

    @classmethod
    def of(cls, problem: RowProblem, rule: Rule, seed: int, epochs: int | None) -> RenumberedProblem:
        """Return the problem with rows in the order of its epochs, and new numbers of features, where that pays."""
        found = problem.renumbered(seed, epochs or SEVERAL)
        return cls(problem) if found is None else cls(*found, problem.data.n_features, rule.initial)

    def enter(self, state: State) -> State:
        """Return parameters of the original problem as those that are trained."""
        if self.by_rank is None:
            return state
        weights, *others = state
        by_feature = weights.reshape(self.features, -1)
        return np.ascontiguousarray(by_feature[self.by_rank]).reshape(-1, weights.shape[1]), *others

    def leave(self, state: State) -> State:
        """Return parameters that were trained as those of the original problem."""
        if self.by_rank is None:
            return state
        weights, *others = state
        width, outputs = weights.shape[1], len(weights) // len(self.by_rank)
        found: Any = np.empty((self.features, outputs, width), weights.dtype)
        if len(self.by_rank) < self.features:
            found[:] = self.initial[:width]
        found[self.by_rank] = weights.reshape(-1, outputs, width)
        return found.reshape(-1, width), *others


SEVERAL = 10  # epochs of a run that only time limits, for the decision whether to copy its rows
