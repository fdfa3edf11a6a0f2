"""Tiers of features by frequency, and the largest eigenvalues on which merges of a tier depend."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from hogwild.data.csr import Array, CSRRows
from hogwild.data.frequent_first import Ranking
from hogwild.kernels.linear_build import multiply_by_moments
from hogwild.parallel import in_parallel

FIRST_TIER = 2**8  # features of the first tier
SAMPLED_ROWS, ROUNDS = 2**11, 3  # for the largest eigenvalues
# Most parts of the rows that are multiplied at the same time, and the least non-zeros of one, which take longer than
# waking a thread.
PARTS, PART_WORK = 8, 2**15


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


def mean_squares(few: CSRRows) -> Array:
    """Return the mean square of the values of each feature in a few rows; that of all values where they have none."""
    if not few.values.size:
        return np.ones(few.features)
    if few.layout == "dense":
        means: Array = np.square(few.values.reshape(-1, few.features), dtype=np.float64).mean(axis=0)
        return means
    entries = slice(int(few.indptr[0]), int(few.indptr[-1]))
    columns, squares = few.indices[entries], np.square(few.values[entries], dtype=np.float64)
    counts = np.bincount(columns, minlength=few.features)
    sums = np.bincount(columns, squares, minlength=few.features)
    return np.where(counts > 0, sums / np.maximum(counts, 1), squares.mean() if squares.size else 1.0)


def eigenvalues(few: CSRRows, ranks: Array, tiers: Array) -> Array:
    """Return the largest eigenvalue of the second moments of each tier's features, in a few rows."""
    entries = slice(int(few.indptr[0]), int(few.indptr[-1]))
    starts, weights = few.indptr - few.indptr[0], np.ones(len(few), np.float32)
    numbered = replace(few, indptr=starts, indices=ranks[few.indices[entries]], values=few.values[entries])
    return largest_eigenvalues(numbered, weights, tiers)


def largest_eigenvalues(
    rows: CSRRows, weights: Array, tiers: Array, rounds: int = ROUNDS, threads: int | None = None
) -> Array:  # fmt: skip
    """Return the largest eigenvalue of the weighted second moments of each tier's features, in the first rows.

    There are as many of them as weights. Power iteration comes near the largest eigenvalue in few rounds, whatever the
    gap to the next one. The result does not depend on the number of threads.
    """
    count, features = len(weights), int(tiers[-1])
    nonzeros = int(rows.indptr[count]) - int(rows.indptr[0])
    bounds = np.linspace(0, count, max(1, min(PARTS, nonzeros // PART_WORK)) + 1).astype(np.int64)
    vector, images = np.ones(features, np.float32), np.empty((len(bounds) - 1, features), np.float32)
    tier_of = np.repeat(np.arange(len(tiers) - 1, dtype=np.uint8), np.diff(tiers))
    multiply, arguments = multiply_by_moments(rows.layout), (*rows.arrays[:3], weights, tier_of)

    def work(part: int) -> None:
        multiply(*arguments, vector, bounds[part], bounds[part + 1], images[part])

    for _ in range(rounds):
        for low, high in pairwise(tiers):
            vector[low:high] *= np.float32(1 / max(_norm(vector[low:high]), 1e-20))
        in_parallel(work, range(len(images)), threads)
        images.sum(axis=0, out=vector)
    return np.array([_norm(vector[low:high]) / count for low, high in pairwise(tiers)])


def _norm(vector: Array) -> float:
    return float(np.sqrt(np.square(vector, dtype=np.float64).sum()))
