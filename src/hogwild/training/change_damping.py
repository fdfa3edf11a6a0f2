"""Damping of the changes that many workers make to the same parameters between two exchanges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hogwild.jit import specialise
from hogwild.kernels.touched_parameters import mean_steps
from hogwild.messaging.deltas import Floats
from hogwild.problems.feature_tiers import FeatureTiers
from hogwild.problems.problem import State

CALM = 0.1  # part of the distance to the optimum that the changes of all workers may close together


@dataclass(frozen=True, slots=True, eq=False)
class ChangeDamping:
    """Shares of the changes of each tier of features, with which the changes of all workers do not overshoot.

    Along the steepest direction of a tier, the steps of one worker close about the part t of the distance to the
    optimum, where t is the number of rows times curvature times step. Changes arrive late, and so those of all n
    workers together must not close more than ``CALM`` of it: the share is ``CALM / (n t)``, and at most 1.
    """

    tier_of: Any  # tier of each feature
    tiers: FeatureTiers | None
    mean_steps: Any  # compiled function of the rule; None where its steps are not known
    constants: Any
    workers: int

    @classmethod
    def of(cls, problem: Any, rule: Any, workers: int, features: int) -> ChangeDamping:
        """Return the damping for a problem and a rule."""
        tiers = problem.feature_tiers() if rule.effective_step is not None else None
        if tiers is None:
            return cls(np.zeros(features, np.uint8), None, None, None, workers)
        tier_of = (np.searchsorted(tiers.bounds, tiers.ranking.ranks, side="right") - 1).astype(np.uint8)
        steps = specialise(mean_steps, effective_step=rule.effective_step)
        return cls(tier_of, tiers, steps, rule.constants, workers)

    def shares(self, state: State, rows: int, rate: float) -> Floats:
        """Return the share of each tier's changes after a number of rows; 0 where they are not known."""
        if self.tiers is None:
            return np.zeros(1, np.float32)
        steps = np.empty(len(self.tiers.curvatures), np.float32)
        self.mean_steps(
            state[0], self.tiers.ranking.features, self.tiers.bounds, np.float32(rate), self.constants, steps
        )
        closed = np.maximum(self.workers * rows * self.tiers.curvatures * steps, 1e-9)
        shares: Floats = np.minimum(1.0, CALM / closed).astype(np.float32)
        return shares
