"""Block order of ratings: blocks of users and items, so that the factors of a block stay in the cache of a core.

The method is that of LIBMF (Chin et al. 2015) and of distributed SGD (Gemulla et al. 2011). Users and items are divided
into groups at random. The ratings of one group of items by one group of users use few rows of factors repeatedly.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.shuffle import gather_most
from hogwild.jit import compiled

# Smallest number of ratings in a block. A smaller block ends before its rows of factors are in the cache.
FEWEST = 2**10
MOST_SIDES = 2**7  # Largest number of groups of users, and of items.


def sides_for(ratings: int, table: int, cache: int) -> int:
    """Return the number of groups of users, and of items, with which a block's part of a table fits into a cache.

    ``table`` and ``cache`` are in bytes.

    >>> sides_for(1_000_000, 2_000_000, 2**18), sides_for(1_000_000, 100_000, 2**18), sides_for(10_000, 10**9, 2**18)
    (8, 1, 3)
    """
    wanted, most = -(-table // cache), int((ratings / FEWEST) ** 0.5)
    return max(1, min(wanted, most, MOST_SIDES))


def in_blocks(data: InMemoryDataset, sides: int, seed: int) -> InMemoryDataset:
    """Copy the ratings in the order of their blocks, and in random order within each block.

    The epochs of the copy visit chunks in random order, and the blocks of rows within a chunk in random order. A chunk
    is about as large as a block of ratings.
    """
    random = np.random.default_rng([seed, 2])
    group = random.integers(0, sides, data.n_features, dtype=np.uint16)  # Group of every user and of every item.
    rows = data.rows
    pairs = rows.indices[int(rows.indptr[0]) : int(rows.indptr[-1])].reshape(-1, 2)
    chosen: Array = np.arange(len(rows)) if data.ids is None else data.ids
    order = _by_block(pairs, chosen.astype(np.int64, copy=False), group, sides, _leap(len(chosen), random))
    chunk = -(-data.n_rows // sides**2)
    return InMemoryDataset(gather_most(rows, order), shuffled=True, name=data.name, chunk=min(data.chunk, chunk))


def _leap(rows: int, random: np.random.Generator) -> int:
    """Return a step that visits all rows modulo ``rows``, and that leads from a row to a distant row.

    >>> leap = _leap(10, np.random.default_rng(0))
    >>> sorted(k * leap % 10 for k in range(10)) == list(range(10))
    True
    """
    leap = int(rows * random.uniform(0.3, 0.7)) | 1
    while math.gcd(leap, rows) != 1:
        leap += 2
    return leap


@compiled
def _by_block(pairs: Any, chosen: Any, group: Any, sides: Any, leap: Any) -> Any:
    """Return the chosen rows in the order of their blocks; scatter the rows within a block."""
    rows = len(chosen)
    ends = np.zeros(sides * sides + 1, np.int64)
    for i in chosen:
        ends[np.int64(group[pairs[i, 0]]) * sides + group[pairs[i, 1]] + 1] += 1
    for block in range(sides * sides):
        ends[block + 1] += ends[block]
    order, at = np.empty(rows, np.int64), 0
    for _ in range(rows):
        i = chosen[at]
        block = np.int64(group[pairs[i, 0]]) * sides + group[pairs[i, 1]]
        order[ends[block]] = i
        ends[block] += 1
        at = (at + leap) % rows
    return order
