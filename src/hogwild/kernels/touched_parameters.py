"""Loops along the parameters of the features that some rows have, and along those of the intercepts.

The parameters of a feature are a row of a table: the values of all outputs, each with the state of the rule.
"""

# mypy: disable-error-code="call-arg, unreachable"

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.jit import compiled
from hogwild.prefetch import prefetch, prefetch_to_write

AHEAD = 16  # features between one that is changed and the one that is fetched into the cache meanwhile


@compiled
def note_features(indptr: Any, indices: Any, order: Any, marks: Any, features: Any, count: Any) -> Any:
    """Note the features of some rows that are not marked yet, and mark them; ``marks`` has a bit per feature.

    Return the number of features that are noted, of which there were ``count``.
    """
    one = np.uint64(1)
    for row in order:
        for at in range(np.uint64(indptr[row]), np.uint64(indptr[np.int64(row) + 1])):
            u = np.uint64(indices[at])
            word, bit = u >> np.uint64(6), one << (u & np.uint64(63))
            before = marks[word]
            features[count] = u  # which the next one overwrites if this one is marked: a branch would take longer
            count += np.int64(before & bit == np.uint64(0))
            marks[word] = before | bit
    return count


@compiled
def copy_rows(table: Any, features: Any, copies: Any) -> None:
    """Copy the parameters of features, one row after the other."""
    for i in range(features.size):
        if i + AHEAD < features.size:
            prefetch(table, np.int64(features[i + AHEAD]))
        for k in range(table.shape[1]):
            copies[i, k] = table[features[i], k]


@compiled
def unmark(marks: Any, features: Any) -> None:
    """Clear the marks of features."""
    for u in features:
        marks[np.uint64(u) >> np.uint64(6)] = 0


@compiled
def weigh_changes(
    table: Any, features: Any, before: Any, level_of: Any, shift: Any, shares: Any, fixed: Any, change: Any
) -> None:  # fmt: skip
    """Weigh the changes of the parameters of features since those ``before``, and make them the parameters.

    ``shares`` has the weight of each level, and ``level_of`` the level of each block of 2**``shift`` features. A column
    with a positive number in ``fixed`` has that weight.
    """
    width = table.shape[1]
    for i in range(features.size):
        if i + AHEAD < features.size:
            prefetch_to_write(table, np.int64(features[i + AHEAD]), 0)
        u = np.int64(features[i])
        share = shares[level_of[u >> shift]]
        for k in range(width):
            old = before[i, k]
            moved = (fixed[k] if fixed[k] > 0 else share) * (table[u, k] - old)
            change[i, k] = moved
            table[u, k] = old + moved


@compiled
def weigh_all_changes(
    table: Any, before: Any, level_of: Any, shift: Any, shares: Any, fixed: Any, change: Any
) -> None:  # fmt: skip
    """Weigh the changes of all parameters."""
    for u in range(table.shape[0]):
        share = shares[level_of[u >> shift]]
        for k in range(table.shape[1]):
            old = before[u, k]
            moved = (fixed[k] if fixed[k] > 0 else share) * (table[u, k] - old)
            change[u, k] = moved
            table[u, k] = old + moved


@compiled
def weigh_block(
    table: Any, shared: Any, level_of: Any, shift: Any, shares: Any, fixed: Any, first: Any, stop: Any, change: Any
) -> None:  # fmt: skip
    """Weigh the changes since the ``shared`` parameters of features from ``first`` to ``stop``, and share them.

    Parameters are in one row. All features of a block of 2**``shift`` have the weight of its level.
    """
    width = fixed.size
    weights, weighted = np.empty(width << shift, np.float32), np.int64(-1)
    begin = first
    while begin < stop:
        level = np.int64(level_of[begin >> shift])
        end = min(stop, ((begin >> shift) + 1) << shift)
        if level != weighted:
            for j in range(weights.size):
                weights[j] = fixed[j % width] if fixed[j % width] > 0 else shares[level]
            weighted = level
        # Slices, whose loop is compiled into vector instructions.
        own, known = table[begin * width : end * width], shared[begin * width : end * width]
        moved = change[(begin - first) * width : (end - first) * width]
        for j in range(own.size):
            moved[j] = weights[j] * (own[j] - known[j])
            known[j] += moved[j]
            own[j] = known[j]
        begin = end


@compiled
def weigh_vector(values: Any, before: Any, weights: Any) -> None:
    """Weigh the change of each value since the values ``before``."""
    for i in range(values.size):
        values[i] = before[i] + weights[i] * (values[i] - before[i])


@compiled
def add_groups(table: Any, beside: Any, indices: Any, values: Any, times: Any) -> None:
    """Add groups of values to the parameters of the intercepts, which come first, and of features.

    A group has the values of one feature, or of several.
    """
    width = table.shape[1]
    flat, group = table.reshape(-1), values.size // max(1, indices.size)
    for i in range(indices.size):
        if i + AHEAD < indices.size:
            prefetch_to_write(table, max(0, np.int64(indices[i + AHEAD]) * group // width - 1), 0)
        at, to = i * group, np.int64(indices[i]) * group - width
        if to < 0:
            for k in range(width):
                beside[k] += times * values[at + k]
        others = width if to < 0 else 0
        if group == width:
            for k in range(others, group):
                flat[to + k] += times * values[at + k]
        else:
            into, added = flat[to + others : to + group], values[at + others : at + group]
            for k in range(into.size):
                into[k] += times * added[k]


@compiled
def put_back(table: Any, features: Any, before: Any) -> None:
    """Write the parameters of features, one row after the other."""
    for i in range(features.size):
        for k in range(table.shape[1]):
            table[features[i], k] = before[i, k]
