"""Small random samples of a data set, for trial runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hogwild.data.csr import CSRRows, concatenate
from hogwild.data.dataset import Dataset
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.shuffle import gather

# Largest ratio of all rows to wanted rows at which one copy from all rows is faster than a copy per chunk.
MANY_CHUNKS = 16


def subsample(data: Dataset, rows: int, seed: int = 0) -> InMemoryDataset:
    """Copy about ``rows`` random rows, or all if there are fewer, into a new data set in memory.

    >>> from hogwild.data.csr import NO_INDICES, NO_WEIGHTS
    >>> table = CSRRows(np.arange(0, 30, 3), NO_INDICES, np.ones(27), np.zeros(9), NO_WEIGHTS, 3, "dense")
    >>> subsample(InMemoryDataset(table, shuffled=False), 4).n_rows
    4
    """
    pieces: list[CSRRows] = []
    walk, wanted, number = data.epoch(seed, 0), min(rows, data.n_rows), 0
    whole = walk.whole() if data.n_rows <= MANY_CHUNKS * wanted else None
    if whole is not None:
        pieces.append(gather(whole.rows, np.asarray(whole.order[:wanted], np.int64)))
        wanted = 0
    while wanted > 0 and number < len(walk):
        chunk = walk[number]
        order = np.asarray(chunk.order[:wanted], np.int64)
        pieces.append(gather(chunk.rows, order))
        walk.done(number)
        wanted, number = wanted - len(order), number + 1
    return InMemoryDataset(
        replace(concatenate(pieces), features=data.n_features), shuffled=True, name=data.name, base=data.base
    )


def narrowed(data: InMemoryDataset) -> InMemoryDataset:
    """Return the same rows without empty columns; the other columns are renumbered in their order.

    >>> from hogwild.data.csr import NO_WEIGHTS
    >>> indices = np.array([3, 9, 3], np.uint32)
    >>> rows = CSRRows(np.array([0, 2, 3]), indices, np.ones(3), np.zeros(2), NO_WEIGHTS, 10, "sparse")
    >>> few = narrowed(InMemoryDataset(rows, shuffled=True))
    >>> few.n_features, few.rows.indices
    (2, array([0, 1, 0], dtype=uint32))
    """
    rows = data.rows
    if rows.layout == "dense" or not rows.nonzeros:
        return data
    present = np.zeros(rows.features, np.bool_)
    present[rows.indices] = True
    numbers = np.cumsum(present, dtype=rows.indices.dtype)  # New column numbers, counted from one.
    few = replace(rows, indices=numbers[rows.indices] - numbers.dtype.type(1), features=int(numbers[-1]))
    return InMemoryDataset(few, shuffled=data.shuffled, name=data.name, base=data.base)
