"""Rows with their features numbered anew, the most frequent ones first.

Workers that share a model treat frequent features in another way than rare ones. With these numbers, frequent features
lie together in memory, and in each row before the rare ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hogwild.data.csr import Array, CSRRows
from hogwild.data.shuffle import copy_renumbered, empty_entries, row_starts
from hogwild.data.slices import in_slices
from hogwild.data.statistics import count_features
from hogwild.jit import compiled, compiled_part
from hogwild.parallel import in_parallel

# Rows that suffice to tell frequent features from rare ones, and to find the most frequent ones.
SAMPLED_ROWS, FEWER_ROWS = 2**13, 2**11
COUNTS = 2**12  # counts that are told apart before the most frequent features are sorted
MOST_PLACES = 2**22  # counts by which features are sorted without comparing them: 32 MiB


@dataclass(frozen=True, slots=True, eq=False)
class FrequentFirst:
    """Rows whose features have new numbers: feature ``u`` has number ``numbers[u]``.

    Row i has its rare features from position ``rare_starts[i]`` on. If all features count as frequent, ``rare_starts``
    is empty.
    """

    rows: CSRRows
    numbers: Array
    rare_starts: Array


def frequent_first(rows: CSRRows, order: Array, frequent: int, threads: int) -> FrequentFirst:
    """Copy sparse rows in this order, with new numbers of their features by frequency, on some threads.

    Rows have the features with numbers below ``frequent`` first. The order must be random, because frequencies are
    those of the first rows.

    >>> from hogwild.data.csr import NO_VALUES, NO_WEIGHTS
    >>> rows = CSRRows(np.array([0, 2, 3, 5]), np.array([0, 4, 4, 1, 4], np.uint32), NO_VALUES, np.arange(3.0),
    ...                NO_WEIGHTS, features=5, layout="binary")
    >>> found = frequent_first(rows, np.array([2, 1, 0]), 2, threads=1)
    >>> found.numbers, found.rows.indices, found.rare_starts
    (array([1, 2, 3, 4, 0], dtype=uint32), array([0, 2, 0, 1, 0], dtype=uint32), array([1, 3, 5]))
    """
    counts, everything = np.zeros(rows.features, np.int64), frequent >= rows.features
    sampled = order[: FEWER_ROWS if everything else SAMPLED_ROWS]
    count_features(rows.indptr, rows.indices, sampled, counts)
    numbers = np.empty(rows.features, np.uint32)
    _number(counts, len(sampled), numbers)
    indptr = row_starts(rows.indptr, order)
    indices, values = empty_entries(rows, int(indptr[-1]))
    rare_starts = np.empty(0 if everything else len(order), np.int64)
    labels = np.empty(len(order), rows.labels.dtype)
    weights = np.empty(len(order) if rows.weights.size else 0, rows.weights.dtype)
    share = -(-len(order) // (4 * threads)) or 1

    def copy(first: int) -> None:
        part = slice(first, min(first + share, len(order)))
        ids = order[part]
        if everything:
            copy_renumbered(*rows.arrays[:3], ids, indptr[part], indices, values, numbers)
        else:
            _divide_rows(*rows.arrays[:3], ids, numbers, frequent, indptr[part], indices, values, rare_starts[part])
        labels[part] = rows.labels[ids]
        if weights.size:
            weights[part] = rows.weights[ids]

    in_parallel(copy, range(0, len(order), share), threads)
    copied = replace(rows, indptr=indptr, indices=indices, values=values, labels=labels, weights=weights)
    return FrequentFirst(copied, numbers, rare_starts)


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Features in the order of their frequencies, the most frequent first, and the rank of every feature."""

    features: Array
    ranks: Array


def ranking(counts: Array) -> Ranking:
    """Rank features by their counts, and those with equal counts by their numbers.

    >>> found = ranking(np.array([3, 0, 5, 3]))
    >>> found.features, found.ranks
    (array([2, 0, 3, 1]), array([1, 3, 0, 2], dtype=uint32))
    """
    most = int(counts.max(initial=0))
    ranks, features = np.empty(len(counts), np.uint32), np.empty(len(counts), np.int64)
    if most > MOST_PLACES + len(counts):
        features[:] = np.argsort(-counts, kind="stable")
        ranks[features] = np.arange(len(counts), dtype=np.uint32)
        return Ranking(features, ranks)
    _number(counts, most, ranks)
    in_slices(len(counts), lambda part: _invert(ranks[part], part.start, features))
    return Ranking(features, ranks)


def most_frequent(counts: Array, wanted: int) -> Ranking:
    """Rank the ``wanted`` most frequent features; all others have the rank ``wanted``.

    >>> found = most_frequent(np.array([3, 0, 5, 3]), 2)
    >>> found.features, found.ranks
    (array([2, 0]), array([1, 2, 0, 2], dtype=uint32))
    """
    among = in_slices(len(counts), lambda part: _histogram(counts[part]))
    at_least = np.cumsum(np.sum(among, axis=0)[::-1])[::-1]  # features with at least this count, or with more places
    least = max(0, int(np.searchsorted(-at_least, -wanted, side="right")) - 1)
    pieces = in_slices(len(counts), lambda part: part.start + np.flatnonzero(counts[part] >= least))
    candidates = np.concatenate(pieces)
    features = candidates[np.argsort(-counts[candidates], kind="stable")[:wanted]]
    ranks = np.empty(len(counts), np.uint32)
    in_slices(len(counts), lambda part: ranks[part].fill(wanted))
    ranks[features] = np.arange(len(features), dtype=np.uint32)
    return Ranking(features, ranks)


@compiled
def _histogram(counts: Array) -> Array:
    """Return how many features have each count below ``COUNTS``; the last place has those with more."""
    found = np.zeros(COUNTS, np.int64)
    for count in counts:
        found[min(count, COUNTS - 1)] += 1
    return found


@compiled
def _invert(numbers: Array, first: int, features: Array) -> None:
    """Write the features from ``first`` on to the places given by their numbers."""
    for u in range(numbers.size):
        features[numbers[u]] = first + u


@compiled
def _number(counts: Array, most: int, numbers: Array) -> None:
    """Number features by their counts, which are at most ``most``, the highest first."""
    places = np.zeros(most + 2, np.int64)  # the number of the next feature with this count
    for count in counts:
        places[count] += 1
    for count in range(most, -1, -1):
        places[count] += places[count + 1]
    for u in range(counts.size):
        numbers[u] = places[counts[u] + 1]
        places[counts[u] + 1] += 1


@compiled
def _divide_rows(
    indptr: Array, indices: Array, values: Array, ids: Array, numbers: Array, frequent: int, starts: Array,
    out_indices: Array, out_values: Array, rare_starts: Array,
) -> None:  # fmt: skip
    """Copy rows to their starts in the output, with new numbers, and with the frequent features first."""
    for at in range(ids.size):
        start, stop = np.uint64(indptr[ids[at]]), np.uint64(indptr[ids[at] + 1])
        to = np.uint64(starts[at])
        rare_starts[at] = _divide_row(indices, values, start, stop, numbers, frequent, to, out_indices, out_values)


@compiled_part
def _divide_row(
    indices: Array, values: Array, start: Any, stop: Any, numbers: Array, frequent: int, to: Any, out_indices: Array,
    out_values: Array,
) -> Any:  # fmt: skip
    """Copy a row with its frequent features first, and return where the others begin."""
    last = to + stop - start
    for entry in range(start, stop):
        number = numbers[indices[entry]]
        place = to
        if number < frequent:
            to += np.uint64(1)
        else:
            last -= np.uint64(1)
            place = last
        out_indices[place] = number
        if out_values.size:
            out_values[place] = values[entry]
    return to
