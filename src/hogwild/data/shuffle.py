"""Physical shuffle: rows get random keys and are stored in the order of their keys.

The key of a row depends on its number and the seed alone. The same rows therefore get the same order in memory and
through files, in pieces of any size.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np

from hogwild.data.csr import NO_INDICES, NO_VALUES, Array, CSRRows
from hogwild.data.slices import in_slices
from hogwild.jit import compiled
from hogwild.machine import usable_cores
from hogwild.parallel import in_parallel

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1
FEW_STARTS = 2**16  # starts of rows that take longer to compute than waking a thread
WORTH_A_THREAD = 2**17  # entries of rows in random order to copy, about a millisecond


def row_keys(first: int, count: int, seed: int) -> Array:
    """Return distinct random 64-bit keys of the rows numbered from ``first`` (SplitMix64, Steele et al. 2014).

    >>> bool((row_keys(2, 3, seed=0) == row_keys(0, 5, seed=0)[2:]).all())
    True
    """
    start = (_mixed(seed & _MASK) + (first + 1) * _GOLDEN) & _MASK
    keys = np.arange(count, dtype=np.uint64) * np.uint64(_GOLDEN) + np.uint64(start)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(keys ^ (keys >> np.uint64(31)))


def shuffled_order(n_rows: int, seed: int) -> Array:
    """Return the row numbers in the order of their keys.

    >>> shuffled_order(5, seed=0)
    array([...])
    """
    return np.argsort(row_keys(0, n_rows, seed))


def gather(rows: CSRRows, order: Array) -> CSRRows:
    """Copy the rows with these numbers, in this order, into contiguous arrays.

    >>> from hogwild.data.csr import NO_WEIGHTS
    >>> rows = CSRRows(np.array([0, 2, 3]), np.array([0, 4, 1], np.uint32), np.ones(3, np.float32),
    ...             np.array([1.0, -1.0]), NO_WEIGHTS, features=5, layout="sparse")
    >>> gather(rows, np.array([1, 0])).indices
    array([1, 0, 4], dtype=uint32)
    """
    lengths = rows.indptr[order + 1] - rows.indptr[order]
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    indices, values = empty_entries(rows, int(indptr[-1]))
    copy_rows(*rows.arrays[:3], order, indptr[:-1], indices, values, 0)
    weights = rows.weights[order] if rows.weights.size else rows.weights
    return replace(rows, indptr=indptr, indices=indices, values=values, labels=rows.labels[order], weights=weights)


def gather_most(rows: CSRRows, order: Array, threads: int | None = None, new_numbers: Array | None = None) -> CSRRows:
    """Copy most or all of the rows, in this order, into contiguous arrays, on some threads or on all cores.

    With ``new_numbers``, feature u has number ``new_numbers[u]`` in the copy.

    >>> from hogwild.data.csr import NO_INDICES, NO_WEIGHTS
    >>> table = CSRRows(np.arange(0, 30, 3), NO_INDICES, np.ones(27), np.arange(9.0), NO_WEIGHTS, 3, "dense")
    >>> gather_most(table, np.arange(9, dtype=np.uint32)[::-1]).labels
    array([8., 7., 6., 5., 4., 3., 2., 1., 0.])
    """
    indptr = row_starts(rows.indptr, order)
    threads = max(1, min(threads or usable_cores(), int(indptr[-1]) // WORTH_A_THREAD))
    indices, values = empty_entries(rows, int(indptr[-1]))
    labels = np.empty(len(order), rows.labels.dtype)
    weights = np.empty(len(order) if rows.weights.size else 0, rows.weights.dtype)
    source, share = rows.arrays[:3], -(-len(order) // (4 * threads)) or 1

    def copy(first: int) -> None:
        part = slice(first, min(first + share, len(order)))
        numbers = order[part].astype(np.int64)
        if new_numbers is None:
            copy_rows(*source, numbers, indptr[part], indices, values, 0)
        else:
            copy_renumbered(*source, numbers, indptr[part], indices, values, new_numbers)
        labels[part] = rows.labels[numbers]
        if weights.size:
            weights[part] = rows.weights[numbers]

    in_parallel(copy, range(0, len(order), share), threads)
    return replace(rows, indptr=indptr, indices=indices, values=values, labels=labels, weights=weights)


def place(pool: Executor, piece: CSRRows, starts: Array, indices: Array, values: Array, base: int) -> None:
    """Copy every row of a piece to its start in the final arrays, on all cores, and subtract the base."""
    share = -(-len(piece) // (4 * usable_cores())) or 1
    parts: Iterable[Array] = (np.arange(at, min(at + share, len(piece))) for at in range(0, len(piece), share))
    source: tuple[Any, ...] = piece.arrays[:3]
    tasks = [pool.submit(copy_rows, *(*source, part, starts[part], indices, values, base)) for part in parts]
    for task in tasks:
        task.result()


def empty_entries(rows: CSRRows, nonzeros: int) -> tuple[Array, Array]:
    """Allocate indices and values for ``nonzeros`` entries in the layout of these rows."""
    indices = NO_INDICES if rows.layout == "dense" else np.empty(nonzeros, rows.indices.dtype)
    values = NO_VALUES if rows.layout == "binary" else np.empty(nonzeros, rows.values.dtype)
    return indices, values


def row_starts(indptr: Array, order: Array) -> Array:
    """Return where rows start if they are stored in this order, and where the last one ends.

    >>> row_starts(np.array([0, 2, 3]), np.array([1, 0]))
    array([0, 1, 3])
    """
    starts = np.empty(len(order) + 1, np.int64)
    totals = in_slices(len(order), lambda part: _ends(indptr, order[part], starts[1:][part]), FEW_STARTS)
    starts[0], before = 0, np.cumsum([0, *totals])

    def move(part: slice) -> None:
        starts[1:][part] += before[part.start // FEW_STARTS]

    in_slices(len(order), move, FEW_STARTS)
    return starts


@compiled
def _ends(indptr: Array, order: Array, ends: Array) -> Any:
    """Write where rows end if they are stored in this order; return where the last one does."""
    total = np.int64(0)
    for at in range(order.size):
        row = np.int64(order[at])
        total += np.int64(indptr[row + 1]) - np.int64(indptr[row])
        ends[at] = total
    return total


@compiled
def copy_rows(
    indptr: Array,
    indices: Array,
    values: Array,
    rows: Array,
    starts: Array,
    out_indices: Array,
    out_values: Array,
    base: int,
) -> None:
    """Copy the entries of ``rows`` to their starts in the output; an array that is empty in the layout stays empty."""
    for at in range(rows.size):
        start, stop = np.uint64(indptr[rows[at]]), np.uint64(indptr[rows[at] + 1])
        to = np.uint64(starts[at])
        if out_indices.size > 0:
            for entry in range(stop - start):
                out_indices[to + entry] = indices[start + entry] - np.uint32(base)
        if out_values.size > 0:
            for entry in range(stop - start):
                out_values[to + entry] = values[start + entry]


@compiled
def copy_renumbered(
    indptr: Array,
    indices: Array,
    values: Array,
    rows: Array,
    starts: Array,
    out_indices: Array,
    out_values: Array,
    numbers: Array,
) -> None:
    """Copy the entries of sparse ``rows`` to their starts in the output, with new numbers of features."""
    for at in range(rows.size):
        start, stop = np.uint64(indptr[rows[at]]), np.uint64(indptr[rows[at] + 1])
        to = np.uint64(starts[at])
        for entry in range(stop - start):
            out_indices[to + entry] = numbers[indices[start + entry]]
        if out_values.size > 0:
            for entry in range(stop - start):
                out_values[to + entry] = values[start + entry]


def random_permutation(count: int, seed: int) -> Array:
    """Return the numbers below ``count`` in random order, several times as fast as NumPy does.

    >>> random_permutation(5, seed=0)
    array([...])
    """
    order = np.arange(count)
    _permute(order, np.uint64(mixed(seed)))
    return order


@compiled
def _permute(order: Array, state: np.uint64) -> None:
    """Shuffle in place by Fisher and Yates, with SplitMix64 (Steele et al. 2014)."""
    for at in range(order.size - 1):
        state += np.uint64(_GOLDEN)
        key = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        # The product of a number below 2^32 and the count is a number below 2^32 times the count.
        chosen = at + np.int64((key >> np.uint64(32)) * np.uint64(order.size - at) >> np.uint64(32))
        order[at], order[chosen] = order[chosen], order[at]


def mixed(*numbers: int) -> int:
    """Mix several numbers, such as seeds and counters, into one 64-bit number.

    >>> mixed(1, 2) == mixed(1, 2) != mixed(2, 1)
    True
    """
    state = 0
    for number in numbers:
        state = _mixed((state + _GOLDEN + number) & _MASK)
    return state


def _mixed(number: int) -> int:
    number = ((number ^ (number >> 33)) * 0xFF51AFD7ED558CCD) & _MASK
    number = ((number ^ (number >> 33)) * 0xC4CEB9FE1A85EC53) & _MASK
    return number ^ (number >> 33)
