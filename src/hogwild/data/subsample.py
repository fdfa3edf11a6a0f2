"""Copies of some rows: random ones, on which steps are chosen, and spread ones, on which records are evaluated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hogwild.data import column_bits
from hogwild.data.chunks import row_numbers
from hogwild.data.csr import Array, CSRRows, concatenate
from hogwild.data.dataset import Dataset, Epoch
from hogwild.data.field_vocabulary import FieldVocabulary
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.shuffle import gather
from hogwild.jit import compiled

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
    data = data.here()
    epoch, wanted, number = data.epoch(seed, 0), min(rows, data.n_rows), 0
    found = _in_place(data, epoch, wanted)
    if found is not None:
        pieces.append(gather(*found))
        wanted = 0
    while wanted > 0 and number < len(epoch):
        chunk = epoch[number]
        order = np.asarray(chunk.order[:wanted], np.int64)
        pieces.append(gather(chunk.rows, order))
        epoch.done(number)
        wanted, number = wanted - len(order), number + 1
    taken = replace(concatenate(pieces), features=data.n_features)
    return InMemoryDataset(taken, shuffled=True, name=data.name, base=data.base, table=data.table)


def _in_place(data: Dataset, epoch: Epoch, wanted: int) -> tuple[CSRRows, Array] | None:
    """Return rows in memory and the numbers of the first ones of an epoch; None where a copy per chunk is faster."""
    whole = epoch.whole() if data.n_rows <= MANY_CHUNKS * wanted else None
    return None if whole is None else (whole.rows, np.asarray(whole.order[:wanted], np.int64))


# Rows of a sample that follow each other where rows are in random order, and the fewest groups of them.
NEIGHBOURS, FEWEST_GROUPS = 32, 128


def spread_sample(data: Dataset, rows: int) -> InMemoryDataset:
    """Return about ``rows`` rows that are evenly spread over the stored order, for an evaluation between two epochs.

    Rows that an epoch visits one after the other were all trained on early, or all late: where there are more features
    than rows, their mean loss is up to a quarter below or above that of all rows. Of many shuffled rows in memory some
    neighbours are taken at a time, because to touch another page of memory takes as long as to evaluate several rows.

    >>> from hogwild.data.csr import NO_INDICES, NO_WEIGHTS
    >>> table = CSRRows(np.arange(0, 30, 3), NO_INDICES, np.ones(27), np.arange(9.0), NO_WEIGHTS, 3, "dense")
    >>> spread_sample(InMemoryDataset(table, shuffled=True), 3).labels()
    array([1., 4., 7.])
    """
    data = data.here()
    stride, epoch, seen = max(1, data.n_rows // max(1, rows)), data.in_order(), 0
    if isinstance(data, InMemoryDataset) and data.ids is None:  # without a copy
        numbers = row_numbers(0, data.n_rows)
        along = NEIGHBOURS if data.shuffled and rows >= FEWEST_GROUPS * NEIGHBOURS else 1
        whole = numbers[: data.n_rows // along * along].reshape(-1, along)
        ids = whole[stride // 2 :: stride].reshape(-1)
        return InMemoryDataset(data.rows, shuffled=True, name=data.name, base=data.base, ids=ids, table=data.table)
    pieces: list[CSRRows] = []
    for number in range(len(epoch)):
        chunk = epoch[number]
        first = (stride // 2 - seen) % stride
        pieces.append(gather(chunk.rows, np.asarray(chunk.order[first::stride], np.int64)))
        seen += len(chunk.order)
        epoch.done(number)
    taken = replace(concatenate(pieces), features=data.n_features)
    return InMemoryDataset(taken, shuffled=True, name=data.name, base=data.base, table=data.table)


def mean_squared_norm(data: Dataset, rows: int, seed: int = 0) -> float:
    """Return the mean squared norm of the rows that :func:`subsample` copies, mostly without the copy.

    That of binary rows in memory is known without a look at them.

    >>> from hogwild.data.csr import NO_INDICES, NO_WEIGHTS
    >>> table = CSRRows(np.arange(0, 30, 3), NO_INDICES, np.ones(27), np.zeros(9), NO_WEIGHTS, 3, "dense")
    >>> mean_squared_norm(InMemoryDataset(table, shuffled=False), 4)
    3.0
    """
    data = data.here()
    if isinstance(data, InMemoryDataset) and data.layout == "binary":
        return data.nonzeros / max(1, data.n_rows)
    wanted = min(rows, data.n_rows)
    found = _in_place(data, data.epoch(seed, 0), wanted)
    if found is None:
        copied = subsample(data, rows, seed).rows
        found = copied, np.arange(len(copied))
    (indptr, _, values, *_), order = found[0].arrays, found[1]
    if found[0].layout == "binary":
        return float((indptr[order + 1] - indptr[order]).sum()) / max(1, len(order))
    return float(_sum_of_squares(indptr, values, order)) / max(1, len(order))


@compiled
def _sum_of_squares(indptr: Array, values: Array, rows: Array) -> Any:
    """Return the sum of the squares of the entries of rows."""
    total = 0.0
    for at in range(rows.size):
        for entry in range(np.uint64(indptr[rows[at]]), np.uint64(indptr[rows[at] + 1])):
            total += np.float64(values[entry]) * np.float64(values[entry])
    return total


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
    indices = np.empty_like(rows.indices)
    present = column_bits.number_present(rows.indices, rows.features, indices)
    few = replace(rows, indices=indices, features=len(present))
    table = None if data.table is None else FieldVocabulary(data.table.keys[present])
    return InMemoryDataset(few, shuffled=data.shuffled, name=data.name, base=data.base, table=table)
