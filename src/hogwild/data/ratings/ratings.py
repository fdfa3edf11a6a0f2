"""Ratings as arrays of users, items and values, and an order for the cache.

The method is that of LIBMF (Chin et al. 2015) and of distributed SGD (Gemulla et al. 2011). Users and items are divided
into groups at random. The ratings of one group of items by one group of users use few rows of factors repeatedly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hogwild.data.arrays import require_structure
from hogwild.data.csr import NO_VALUES, NO_WEIGHTS, Array, CSRRows
from hogwild.data.ids import Ids, Names, as_names
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.shuffle import gather_most
from hogwild.errors import DataError
from hogwild.jit import compiled


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """Ratings in memory, with the names of users and items.

    A rating is a binary row with two entries: the number of the user, and the number of the item. Numbers of items
    start after those of all users. One further number, after all items, represents an unknown user or item.

    >>> ratings = Ratings.of(["ann", "bob", "ann"], [7, 7, 9], [5, 3, 4])
    >>> ratings.data.rows.indices.reshape(-1, 2).tolist(), ratings.data.labels().tolist()
    ([[0, 2], [1, 2], [0, 3]], [5.0, 3.0, 4.0])
    """

    data: InMemoryDataset
    users: Ids
    items: Ids

    @classmethod
    def of(
        cls, users: Names, items: Names, ratings: ArrayLike | None = None, *, known: tuple[Ids, Ids] | None = None,
        grow: bool = False, name: str = "columns", shuffled: bool = False,
    ) -> Ratings:  # fmt: skip
        """Make ratings from columns; by default all ratings are 1.

        With ``known`` names, their numbers are used. If ``grow`` is true, new names get numbers after them. Otherwise a
        new name is an unknown user or item.
        """
        users, items = as_names(users), as_names(items)
        values = np.ones(len(users)) if ratings is None else _numbers(ratings, name)
        _check(users, items, values, name)
        if known is None:
            known = Ids.of(users), Ids.of(items)
        elif grow:
            known = known[0].with_more(users), known[1].with_more(items)
        return cls(_rows(users, items, values, known, name, shuffled), *known)

    @classmethod
    def of_matrix(cls, matrix: Any) -> Ratings:
        """Make ratings from the stored entries of a sparse matrix, with users as rows and items as columns."""
        matrix = require_structure(matrix)
        if sum(matrix.shape) >= MOST_NAMES:
            raise DataError(
                f"a matrix of shape {matrix.shape[0]:,} x {matrix.shape[1]:,} has more rows and columns than there are "
                "numbers for",
                path="matrix",
                remedy="Give columns (users, items, ratings), of which only those that occur count.",
            )
        entries = matrix.tocoo()
        known = Ids(np.arange(entries.shape[0])), Ids(np.arange(entries.shape[1]))
        return cls.of(entries.row, entries.col, entries.data, known=known, name="matrix")

    @property
    def n_rows(self) -> int:
        """The number of ratings."""
        return self.data.n_rows

    @property
    def n_users(self) -> int:
        """The number of users."""
        return len(self.users)

    @property
    def n_items(self) -> int:
        """The number of items."""
        return len(self.items)

    @property
    def columns(self) -> tuple[Array, Array, Array]:
        """The numbers of users, the numbers of items (both from zero) and the ratings, in stored order."""
        rows, numbers = self.data.rows, self.data.ids
        pairs = rows.indices[int(rows.indptr[0]) : int(rows.indptr[-1])].reshape(-1, 2)
        chosen = pairs if numbers is None else pairs[numbers]
        return chosen[:, 0].astype(np.int64), chosen[:, 1].astype(np.int64) - self.n_users, self.data.labels()

    def split(self, fraction: float, seed: int) -> tuple[Ratings, Ratings]:
        """Split off a random fraction of the ratings, and return (the other ratings, the ratings split off)."""
        rest, aside = self.data.split(fraction, seed)
        return replace(self, data=rest), replace(self, data=aside)

    def with_data(self, change: Callable[[InMemoryDataset], InMemoryDataset]) -> Ratings:
        """Return the same users and items with ratings that have passed through ``change``."""
        return replace(self, data=change(self.data))


MOST_NAMES = 2**32 - 1  # The number of an unknown name is the largest one.


def _numbers(ratings: ArrayLike, name: str) -> Array:
    if isinstance(ratings, np.ma.MaskedArray) and np.ma.is_masked(ratings):
        raise DataError("some of the ratings are masked", path=name, remedy="Leave them out.")
    try:
        return np.asarray(ratings, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"ratings are numbers, and here is one that is not ({error})", path=name) from None


def _check(users: Array, items: Array, values: Array, name: str) -> None:
    if not len(users) == len(items) == len(values):
        raise DataError(
            f"there are {len(users):,} users, {len(items):,} items and {len(values):,} ratings, and a rating is one of "
            "each",
            path=name,
        )
    if not len(users):
        raise DataError("there is no rating", path=name)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise DataError("ratings are finite numbers, and here is one that is not", path=name)


def _rows(
    users: Array, items: Array, values: Array, known: tuple[Ids, Ids], name: str, shuffled: bool
) -> InMemoryDataset:
    n_users, n_items = len(known[0]), len(known[1])
    unknown = n_users + n_items
    if unknown >= MOST_NAMES:
        raise DataError(f"{unknown:,} users and items are more than there are numbers for", path=name)
    user_numbers, item_numbers = known[0].numbers_of(users), known[1].numbers_of(items)
    pairs = np.empty((len(values), 2), np.uint32)
    pairs[:, 0] = np.where(user_numbers < 0, unknown, user_numbers)
    pairs[:, 1] = np.where(item_numbers < 0, unknown, item_numbers + n_users)
    indptr = np.arange(0, 2 * len(values) + 1, 2, dtype=np.int64)
    rows = CSRRows(indptr, pairs.ravel(), NO_VALUES, values, NO_WEIGHTS, unknown + 1, "binary")
    return InMemoryDataset(rows, shuffled=shuffled, name=name)


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
    order = _by_block(pairs, chosen.astype(np.int64, copy=False), group, sides, _stride(len(chosen), random))
    chunk = -(-data.n_rows // sides**2)
    return InMemoryDataset(gather_most(rows, order), shuffled=True, name=data.name, chunk=min(data.chunk, chunk))


def _stride(rows: int, random: np.random.Generator) -> int:
    """Return a step that visits all rows modulo ``rows``, and that leads from a row to a distant row.

    >>> stride = _stride(10, np.random.default_rng(0))
    >>> sorted(k * stride % 10 for k in range(10)) == list(range(10))
    True
    """
    stride = int(rows * random.uniform(0.3, 0.7)) | 1
    while math.gcd(stride, rows) != 1:
        stride += 2
    return stride


@compiled
def _by_block(pairs: Array, chosen: Array, group: Array, sides: int, stride: int) -> Array:
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
        at = (at + stride) % rows
    return order
