"""Ratings of items by users, as rows with two entries each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hogwild.data.csr import NO_VALUES, NO_WEIGHTS, Array, CSRRows
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.ratings.id_index import Ids, as_names
from hogwild.errors import DataError


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
        cls, users: Any, items: Any, ratings: Any = None, *, known: tuple[Ids, Ids] | None = None, grow: bool = False,
        name: str = "columns", shuffled: bool = False,
    ) -> Ratings:  # fmt: skip
        """Make ratings from columns; by default all ratings are 1.

        With ``known`` names, their numbers are used. If ``grow`` is true, new names get numbers after them. Otherwise a
        new name is an unknown user or item.
        """
        users, items = as_names(users), as_names(items)
        values = np.ones(len(users)) if ratings is None else np.asarray(ratings, np.float64)
        _check(users, items, values, name)
        if known is None:
            known = Ids.of(users), Ids.of(items)
        elif grow:
            known = known[0].with_more(users), known[1].with_more(items)
        return cls(_rows(users, items, values, known, name, shuffled), *known)

    @classmethod
    def of_matrix(cls, matrix: Any) -> Ratings:
        """Make ratings from the stored entries of a sparse matrix, with users as rows and items as columns."""
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
    if unknown >= 2**32 - 1:
        raise DataError(f"{unknown:,} users and items are more than there are numbers for", path=name)
    who, what = known[0].numbers_of(users), known[1].numbers_of(items)
    pairs = np.empty((len(values), 2), np.uint32)
    pairs[:, 0], pairs[:, 1] = np.where(who < 0, unknown, who), np.where(what < 0, unknown, what + n_users)
    indptr = np.arange(0, 2 * len(values) + 1, 2, dtype=np.int64)
    rows = CSRRows(indptr, pairs.ravel(), NO_VALUES, values, NO_WEIGHTS, unknown + 1, "binary")
    return InMemoryDataset(rows, shuffled=shuffled, name=name)
