"""Feature frequencies: the number of rows in which each feature is present, counted over chunks on all cores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.dataset import Epoch
from hogwild.jit import compiled
from hogwild.machine import usable_cores


def feature_counts(walk: Epoch, features: int, nonzeros: int) -> Array:
    """Count the rows of an epoch in which each feature is present, as int64.

    In the dense layout every row has every feature.

    >>> from hogwild.data.in_memory import InMemoryDataset
    >>> from hogwild.data.csr import CSRRows, NO_WEIGHTS
    >>> rows = CSRRows(np.array([0, 2, 3]), np.array([0, 2, 2], np.uint32), np.ones(3, np.float32),
    ...             np.zeros(2), NO_WEIGHTS, features=3, layout="sparse")
    >>> feature_counts(InMemoryDataset(rows, shuffled=True).in_order(), 3, 3)
    array([1, 0, 2])
    """
    # Each thread counts in an array of its own. A further thread pays only if it counts more entries than that array
    # has.
    threads = max(1, min(usable_cores(), len(walk), nonzeros // (features + 2**18)))
    if threads == 1:
        return _count_share(walk, range(len(walk)), features)
    with ThreadPoolExecutor(threads) as pool:
        shares = [range(first, len(walk), threads) for first in range(threads)]
        counts = list(pool.map(lambda share: _count_share(walk, share, features), shares))
    for other in counts[1:]:
        counts[0] += other
    return counts[0]


def _count_share(walk: Epoch, numbers: range, features: int) -> Array:
    counts = np.zeros(features, np.int64)
    for number in numbers:
        chunk = walk[number]
        if chunk.rows.layout == "dense":
            counts += len(chunk.order)
        else:
            count_features(chunk.rows.indptr, chunk.rows.indices, chunk.order, counts)
        walk.done(number)
    return counts


@compiled
def count_features(indptr: Any, indices: Any, order: Any, counts: Any) -> None:
    """Add the entries of the rows in ``order`` to the counts of their features."""
    for row in order:
        for at in range(np.uint64(indptr[row]), np.uint64(indptr[np.int64(row) + 1])):
            counts[indices[at]] += 1
