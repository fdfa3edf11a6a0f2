"""Dual coordinate ascent (SDCA) for a linear model: its loops, its constants, and the data for which it is fast."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from hogwild.data.csr import NO_WEIGHTS, Array, CSRRows
from hogwild.data.dataset import Dataset
from hogwild.data.frequent_first import Ranking, ranking
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.subsample import mean_squared_norm, subsample
from hogwild.jit import Function, bind
from hogwild.kernels import linear_build
from hogwild.lazy import cached_property
from hogwild.losses import Loss
from hogwild.losses.proximal import by_bisection
from hogwild.problems.dual_replicas import (
    EVERYTHING,
    LEAST_ROWS,
    MERGED,
    DualReplicas,
)
from hogwild.problems.feature_tiers import SAMPLED_ROWS, eigenvalues, tiers_of
from hogwild.problems.problem import QueueKernel, State

# Squared norm of a row, as a multiple of the square that the intercept counts as. The more, the shorter are the steps
# of the intercept. Several workers need shorter ones, because the intercept is in every row.
INTERCEPT_SHARE, INTERCEPT_SHARE_OF_MANY = 30.0, 100.0
# Steps of the method of multipliers in an epoch. Short steps of the intercept need more of them.
MULTIPLIER_STEPS = 3.0
EPOCHS = 10  # of a problem with condition 0 to the optimum: each divides the distance to it by at least e
LEAST_WORK = 2**20  # non-zeros for several workers
# Condition up to which dual coordinate ascent comes close to the optimum sooner than AdaGrad with its trials of step
# sizes, as measured; and non-zeros up to which it does for losses with a kink, which take a single worker here.
FAST_CONDITION, FAST_CONDITION_OF_KINK, FAST_NONZEROS_OF_KINK = 0.6, 2.0, 2**23


@dataclass(frozen=True, eq=False)
class DualAscent:
    """Dual coordinate ascent along the rows of a linear objective with one output."""

    loss: Loss
    l2: float
    intercept: bool
    class_weights: Array
    layout: str
    source: Dataset

    @cached_property
    def squared_norm(self) -> float:
        """The mean squared norm of a row."""
        return max(mean_squared_norm(self.source, SAMPLED_ROWS), 1e-12)

    @cached_property
    def _few(self) -> CSRRows:
        return subsample(self.source, SAMPLED_ROWS).rows

    @property
    def condition(self) -> float:
        """The curvature of a row's loss as a multiple of that of its share of the penalty.

        Where it is small, a few epochs come close to the optimum: about ``1 + condition`` epochs divide the distance
        to it by e (Shalev-Shwartz and Zhang 2013).
        """
        return self._curvature * self.squared_norm / (self.l2 * self.source.n_rows)

    @property
    def _curvature(self) -> float:
        """The curvature of the loss of a row with a large weight."""
        source = self.source
        alike = isinstance(source, InMemoryDataset) and not source.rows.weights.size
        weights = NO_WEIGHTS if alike else self._few.weights
        weight = float(self.class_weights.max()) * (float(weights.max()) if weights.size else 1.0)
        return max(self.loss.curvature * weight, 1e-12)

    @property
    def is_fastest(self) -> bool:
        """Whether other rules would take longer. The number of workers does not matter, so that runs can be resumed."""
        if not self.loss.has_kink:
            return self.condition <= FAST_CONDITION
        return self.source.nonzeros < FAST_NONZEROS_OF_KINK and self.condition <= FAST_CONDITION_OF_KINK

    @property
    def usual_epochs(self) -> int | None:
        """The number of epochs that come to the optimum; None for losses with a kink, which have no such bound."""
        return None if self.loss.has_kink else math.ceil(EPOCHS * (1 + self.condition))

    def kernel(self) -> QueueKernel:
        """Return the inner loop of a single worker."""
        constants = self._constants(1)

        def rest(state: State, sync: Array) -> tuple[Any, ...]:
            return (*state, self.class_weights, float(self.loss.parameter), constants)

        return QueueKernel(self._loop(replica=False), rest)

    def replicas(self, workers: int) -> DualReplicas | None:
        """Return replicas of the weights for at most this number of workers; None where several do not pay."""
        workers = self.max_workers(workers)
        if workers == 1:
            return None
        constants = self._constants(workers)

        def rest(state: State) -> tuple[Any, ...]:
            return (*state, self.class_weights, float(self.loss.parameter), constants)

        return DualReplicas(self._ranking.features, self._tiers, self._gains, self._loop(replica=True), rest, workers)

    def max_workers(self, workers: int) -> int:
        """Return the number of workers, of at most ``workers``, that train longer than they merge."""
        source = self.source
        if self.layout == "dense" or source.n_features > EVERYTHING or source.nonzeros < LEAST_WORK:
            return 1
        return int(max(1, min(workers, MERGED / (self._gains[0] * LEAST_ROWS)))) if workers > 1 else 1

    def _loop(self, replica: bool) -> Any:
        prox = self.loss.prox or _by_bisection(self.loss.function)
        return linear_build.ascend(self.layout, self.loss.function, prox, self.loss.ours, replica)

    def _constants(self, workers: int) -> Array:
        row_step = 1 / (self.l2 * self.source.n_rows)
        bias_step = row_step * self._intercept_square(workers) if self.intercept else 0.0
        drift = MULTIPLIER_STEPS * bias_step / self.source.n_rows
        return np.array([row_step, bias_step, drift, workers, MERGED])

    def _intercept_square(self, workers: int) -> float:
        return self.squared_norm / (INTERCEPT_SHARE if workers == 1 else INTERCEPT_SHARE_OF_MANY)

    @cached_property
    def _ranking(self) -> Ranking:
        return ranking(self.source.frequencies())

    @cached_property
    def _tiers(self) -> Array:
        return tiers_of(self.source.n_features)

    @cached_property
    def _gains(self) -> Array:
        """The part of the distance to the optimum that the step of a row closes, for each tier of several workers."""
        square = self._intercept_square(2)
        found = eigenvalues(self._few, self._ranking.ranks, self._tiers)
        found[0] += square if self.intercept else 0.0
        row_step = 1 / (self.l2 * self.source.n_rows)
        slope = row_step * (self.squared_norm + square)
        steepest = 1 / slope if self.loss.has_kink else 1 / (1 / self._curvature + slope)
        return np.maximum(row_step * steepest * found, 1e-12)


@cache
def _by_bisection(loss: Function) -> Callable[..., float]:
    """Return one function per loss, so that its kernels are compiled once."""
    return bind(by_bisection, loss=loss)
