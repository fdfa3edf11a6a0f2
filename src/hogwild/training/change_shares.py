"""Weights with which the changes of a burst count, and the addition of changes to parameters."""

from __future__ import annotations

import numpy as np

from hogwild.kernels.touched_parameters import add_groups
from hogwild.messaging.deltas import INDEX, Floats, SparseDelta, Vector
from hogwild.problems.problem import State
from hogwild.training.change_weights import ChangeWeights, levels

BLOCK = 4  # binary logarithm of the number of features, in the order of their frequencies, that have one weight


class ChangeShares:
    """Weights of the changes of features, by levels of about the same weight.

    ``in_blocks`` tells whether features are numbered by frequency. Neighbours have about the same weight, and blocks of
    them have their mean.
    """

    def __init__(self, weights: ChangeWeights, outputs: int, in_blocks: bool) -> None:
        features, beside = weights.parts[0][::outputs], weights.parts[1]
        # A table of all features would take room in the cache that the parameters need.
        self.shift = BLOCK if in_blocks else 0
        starts = np.arange(0, len(features), 1 << self.shift)
        sizes = np.diff(starts, append=len(features))
        self.level_of, self.shares = levels(np.add.reduceat(features, starts, dtype=np.float64) / sizes)
        self.fixed: Floats = np.tile(weights.fixed, outputs).astype(np.float32)  # of each column of all outputs
        self.beside: Floats = np.where(self.fixed > 0, self.fixed, np.repeat(beside, len(weights.fixed)))


def add_change(state: State, change: Vector, times: float) -> None:
    """Add a change of some or all parameters to a state."""
    weights, beside = state
    table, others = weights.reshape(-1, beside.size), beside.reshape(-1)
    if isinstance(change, SparseDelta):
        add_groups(table, others, change.indices, change.values, np.float32(times))
    else:
        whole = np.zeros(1, INDEX)
        add_groups(table, others, whole, change, np.float32(times))
