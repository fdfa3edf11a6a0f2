"""Ratings in an order in which their factors stay in a core's cache: block by block of users and items.

As in LIBMF (Chin et al. 2015) and before it in distributed SGD (Gemulla et al. 2011): with users and items dealt out
among so many groups, the ratings of one group of users of one group of items touch few rows of factors again and again.
"""

from __future__ import annotations

import numpy as np

from hogwild.data.memory import Memory
from hogwild.data.rows import Array
from hogwild.data.shuffle import gather_most

FEWEST = 2**10  # ratings in a block: fewer are over before their rows are in the cache
MOST_SIDES = 2**7


def sides_for(ratings: int, table: int, cache: int) -> int:
    """Into how many groups users, and items, are dealt out: so that a block's part of a table fits into a cache.

    >>> sides_for(1_000_000, 2_000_000, 2**18), sides_for(1_000_000, 100_000, 2**18), sides_for(10_000, 10**9, 2**18)
    (8, 1, 3)
    """
    wanted, most = -(-table // cache), int((ratings / FEWEST) ** 0.5)
    return max(1, min(wanted, most, MOST_SIDES))


def in_blocks(data: Memory, sides: int, seed: int) -> Memory:
    """The same ratings, copied in the order of their blocks and at random within each.

    Its epochs walk chunks about as large as blocks in random order, and what is within a chunk in random order too.
    """
    random = np.random.default_rng([seed, 2])
    group = random.integers(0, sides, data.n_features, dtype=np.uint16)  # of every user, and of every item
    rows = data.rows
    pairs = rows.indices[int(rows.indptr[0]) : int(rows.indptr[-1])].reshape(-1, 2)
    chosen: Array = random.permutation(len(rows) if data.ids is None else data.ids)
    block = group[pairs[chosen, 0]] * np.uint16(sides) + group[pairs[chosen, 1]]
    order = chosen[np.argsort(block, kind="stable")]
    chunk = -(-data.n_rows // sides**2)
    return Memory(gather_most(rows, order), shuffled=True, name=data.name, chunk=min(data.chunk, chunk))
