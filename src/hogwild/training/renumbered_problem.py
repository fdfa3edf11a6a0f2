"""Problem whose features are numbered by frequency while it is trained: frequent ones lie together in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.problems.problem import RowProblem, State


@dataclass(frozen=True, eq=False)
class RenumberedProblem:
    """Problem as it is trained, and the features of the original problem in the order of their new numbers."""

    problem: RowProblem
    by_rank: Array | None  # None where features keep their numbers

    @classmethod
    def of(cls, problem: RowProblem, seed: int, epochs: int | None) -> RenumberedProblem:
        """Return the problem with rows in the order of its epochs, and new numbers of features, where that pays."""
        found = problem.renumbered(seed, epochs or SEVERAL)
        return cls(problem, None) if found is None else cls(*found)

    def enter(self, state: State) -> State:
        """Return parameters of the original problem as those that are trained."""
        if self.by_rank is None:
            return state
        weights, *others = state
        return np.ascontiguousarray(self._by_feature(weights)[self.by_rank]).reshape(weights.shape), *others

    def leave(self, state: State) -> State:
        """Return parameters that were trained as those of the original problem."""
        if self.by_rank is None:
            return state
        weights, *others = state
        found: Any = np.empty_like(weights)
        self._by_feature(found)[self.by_rank] = self._by_feature(weights)
        return found, *others

    def _by_feature(self, weights: Any) -> Any:
        assert self.by_rank is not None
        return weights.reshape(len(self.by_rank), -1)


SEVERAL = 10  # epochs of a run that only time limits, for the decision whether to copy its rows
