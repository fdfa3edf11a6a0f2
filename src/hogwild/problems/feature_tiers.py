"""Tiers of features by frequency, and the largest eigenvalues on which merges of a tier depend."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hogwild.data.csr import Array, CSRRows
from hogwild.data.frequent_first import Ranking
from hogwild.kernels.linear_build import largest_eigenvalues

FIRST_TIER = 2**8  # features of the first tier
SAMPLED_ROWS, ROUNDS = 2**11, 3  # for the largest eigenvalues


@dataclass(frozen=True, slots=True, eq=False)
class FeatureTiers:
    """Tiers of features by frequency, and the largest curvature of the objective along the features of each."""

    ranking: Ranking
    bounds: Array  # first rank of each tier, and the end of the last tier
    curvatures: Array


def tiers_of(features: int) -> Array:
    """Return the bounds of tiers of features, of which each is twice the bound before.

    >>> tiers_of(1000).tolist(), tiers_of(100).tolist()
    ([0, 256, 512, 1000], [0, 100])
    """
    bounds = [0, FIRST_TIER]
    while bounds[-1] < features:
        bounds.append(2 * bounds[-1])
    return np.array([*bounds[:-1], features])


def eigenvalues(few: CSRRows, ranks: Array, tiers: Array) -> Array:
    """Return the largest eigenvalue of the second moments of each tier's features, in a few rows."""
    found = np.zeros(len(tiers) - 1)
    entries = slice(int(few.indptr[0]), int(few.indptr[-1]))
    starts, weights = few.indptr - few.indptr[0], np.ones(len(few), np.float32)
    largest_eigenvalues(few.layout)(
        starts, ranks[few.indices[entries]], few.values[entries], weights, tiers, ROUNDS, found
    )
    return found
