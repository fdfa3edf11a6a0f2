"""Loops along the parameters that some rows touch, which are the weights of their features and the intercepts.

Parameters are sent as one vector, in which all first columns come first: weights, intercepts, then the next columns.
"""

# ``specialise`` binds the names that are not defined here.
# mypy: disable-error-code="call-arg, unreachable, name-defined"
# ruff: noqa: F821

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.jit import compiled
from hogwild.kernels.atomics import prefetch, prefetch_to_write

SAMPLED = 256  # features of a tier whose steps are looked at
AHEAD = 16  # places between a parameter that is changed and the one that is fetched meanwhile


@compiled
def copy_rows(weights: Any, features: Any, outputs: Any, values: Any) -> None:
    """Copy the parameters of features, one row after the other."""
    for i in range(features.size):
        if i + AHEAD < features.size:
            prefetch(weights, np.int64(features[i + AHEAD]) * outputs)
        for k in range(outputs):
            u, at = np.int64(features[i]) * outputs + k, i * outputs + k
            for column in range(weights.shape[1]):
                values[at, column] = weights[u, column]


@compiled
def _weigh_row(table: Any, row: Any, before: Any, share: Any, at: Any, place: Any, count: Any, change: Any) -> None:
    """Weigh the changes of one row of a table, and note them."""
    for column in range(table.shape[1]):
        old = before[at, column]
        moved = share * (table[row, column] - old)
        change[column * count + place] = moved
        table[row, column] = old + moved


@compiled
def weigh_changes(
    weights: Any, beside: Any, features: Any, outputs: Any, before: Any, before_beside: Any, shares: Any, tier_of: Any,
    tier_shares: Any, change: Any,
) -> None:  # fmt: skip
    """Weigh the changes of parameters since those ``before``, and make the parameters the weighed ones.

    The weight of a change is the larger of that of the parameter and of that of its feature's tier.
    """
    many, count = weights.shape[0], features.size * outputs + outputs
    for i in range(features.size):
        if i + AHEAD < features.size:
            prefetch_to_write(weights, np.int64(features[i + AHEAD]) * outputs, 0)
        for k in range(outputs):
            u, at = np.int64(features[i]) * outputs + k, i * outputs + k
            share = max(shares[u], tier_shares[tier_of[features[i]]])
            _weigh_row(weights, u, before, share, at, at, count, change)
    for k in range(outputs):
        _weigh_row(beside, k, before_beside, shares[many + k], k, features.size * outputs + k, count, change)


@compiled
def write_indices(features: Any, outputs: Any, width: Any, size: Any, indices: Any) -> None:
    """Write the places of touched parameters in the order of ``pack_state``."""
    count = features.size * outputs + outputs
    for column in range(width):
        for i in range(features.size):
            for k in range(outputs):
                indices[column * count + i * outputs + k] = column * size + np.int64(features[i]) * outputs + k
        for k in range(outputs):
            indices[column * count + features.size * outputs + k] = (column + 1) * size - outputs + k


@compiled
def scatter(whole: Any, features: Any, outputs: Any, width: Any, size: Any, change: Any) -> None:
    """Write changes of touched parameters to their places among all."""
    count = features.size * outputs + outputs
    for column in range(width):
        for i in range(features.size):
            for k in range(outputs):
                whole[column * size + np.int64(features[i]) * outputs + k] = change[column * count + i * outputs + k]
        for k in range(outputs):
            whole[(column + 1) * size - outputs + k] = change[column * count + features.size * outputs + k]


@compiled
def put_back(weights: Any, features: Any, outputs: Any, values: Any) -> None:
    """Write the parameters of features, one row after the other."""
    for i in range(features.size):
        for k in range(outputs):
            for column in range(weights.shape[1]):
                weights[np.int64(features[i]) * outputs + k, column] = values[i * outputs + k, column]


@compiled
def _are_alike(indices: Any, width: Any, size: Any) -> Any:
    """Return whether all columns have the same places."""
    count = indices.size // width
    if count * width != indices.size or (count and indices[count - 1] >= size):
        return False
    differ = 0
    for column in range(1, width):
        first = np.uint32(column * size)
        for i in range(count):
            differ += indices[column * count + i] != indices[i] + first
    return differ == 0


@compiled
def _add_rows(weights: Any, indices: Any, count: Any, values: Any, times: Any) -> Any:
    """Add values at the same places of all columns to the rows of a table, and return the number of places."""
    rows = count
    while rows and indices[rows - 1] >= weights.shape[0]:
        rows -= 1
    for i in range(rows):
        if i + AHEAD < rows:
            prefetch_to_write(weights, np.int64(indices[i + AHEAD]), 0)
        u = np.int64(indices[i])
        for column in range(weights.shape[1]):
            weights[u, column] += times * values[column * count + i]
    return rows


@compiled
def add_sparse(weights: Any, beside: Any, indices: Any, values: Any, times: Any) -> None:
    """Add values at places in the order of ``pack_state`` to the parameters.

    Usually all columns have the same places. Then each row of the tables is read once.
    """
    many, size, i = weights.shape[0], weights.shape[0] + beside.shape[0], 0
    if _are_alike(indices, weights.shape[1], size):
        count = indices.size // weights.shape[1]
        for at in range(_add_rows(weights, indices, count, values, times), count):
            k = np.int64(indices[at]) - many
            for column in range(weights.shape[1]):
                beside[k, column] += times * values[column * count + at]
        return
    for column in range(weights.shape[1]):
        first = column * size
        while i < indices.size and indices[i] < first + many:
            weights[np.int64(indices[i]) - first, column] += times * values[i]
            i += 1
        while i < indices.size and indices[i] < first + size:
            beside[np.int64(indices[i]) - first - many, column] += times * values[i]
            i += 1


@compiled
def add_whole(weights: Any, beside: Any, values: Any, times: Any) -> None:
    """Add a whole vector in the order of ``pack_state`` to the parameters."""
    many, size = weights.shape[0], weights.shape[0] + beside.shape[0]
    for column in range(weights.shape[1]):
        for u in range(many):
            weights[u, column] += times * values[column * size + u]
        for k in range(beside.shape[0]):
            beside[k, column] += times * values[column * size + many + k]


def mean_steps(weights: Any, features: Any, bounds: Any, rate: Any, constants: Any, found: Any) -> None:
    """Write the mean step of the features of each tier, from a sample; ``features`` are in the order of tiers.

    The mean is the inverse root mean square of the inverses, so the smallest steps count most. Small steps belong to
    coordinates that were stepped often.
    """
    for tier in range(found.size):
        total, count = np.float32(0), np.float32(0)
        for at in range(bounds[tier], bounds[tier + 1], max(1, (bounds[tier + 1] - bounds[tier]) // SAMPLED)):
            total += np.float32(1) / effective_step(weights, features[at], rate, constants) ** 2
            count += np.float32(1)
        found[tier] = np.sqrt(count / total)
