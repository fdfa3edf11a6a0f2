"""Ratings as arrays of users, items and values, the numbers of named users and items, and an order for the cache.

The method is that of LIBMF (Chin et al. 2015) and of distributed SGD (Gemulla et al. 2011). Users and items are divided
into groups at random. The ratings of one group of items by one group of users use few rows of factors repeatedly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hogwild.data.arrays import require_structure
from hogwild.data.csr import NO_VALUES, NO_WEIGHTS, Array, CSRRows
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.shuffle import gather_most
from hogwild.errors import DataError
from hogwild.jit import compiled

Names = ArrayLike | Sequence[object]  # Names of users or items: whole numbers, strings, or both.


class Ids:
    """Names that are whole numbers or strings. The number of a name is its position.

    >>> ids = Ids.of(["b", "a", "b"])
    >>> ids.names.tolist(), ids.numbers_of(["b", "x"]).tolist()
    (['a', 'b'], [1, -1])
    >>> ids.with_more(["c", "a"]).names.tolist()
    ['a', 'b', 'c']
    """

    def __init__(self, names: Array) -> None:
        self.names = names

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def of(cls, names: Names) -> Ids:
        """Return the index of all distinct names, sorted."""
        return cls(np.unique(as_names(names)))

    def numbers_of(self, names: Names) -> Array:
        """Return the numbers of names, and -1 for unknown names."""
        wanted = as_names(names)
        if not len(self.names) or not len(wanted):
            return np.full(len(wanted), -1, np.int64)
        # All names of one file are whole numbers, and those of the other file are not.
        if wanted.dtype.kind != self.names.dtype.kind:
            wanted = as_names(_converted(wanted, self.names.dtype.kind))
        places = np.searchsorted(self.names, wanted, sorter=self._sorted)
        numbers = self._sorted[np.minimum(places, len(self.names) - 1)]
        return np.asarray(np.where(self.names[numbers] == wanted, numbers, -1))

    def with_more(self, names: Names) -> Ids:
        """Return an index with new names appended; the numbers of known names stay the same."""
        more = np.unique(as_names(names))
        if len(self.names) and more.dtype.kind != self.names.dtype.kind:
            more = as_names(_converted(more, self.names.dtype.kind, strict=True))
        more = more[self.numbers_of(more) < 0]
        return Ids(np.concatenate([self.names, more])) if len(more) else self

    def arrays(self, prefix: str) -> dict[str, Array]:
        """Return the names as arrays for a file."""
        if self.names.dtype.kind == "i":
            return {f"{prefix}_ids": self.names.astype(np.int64)}
        texts = [str(name).encode() for name in self.names]
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        return {f"{prefix}_text": np.frombuffer(b"".join(texts), np.uint8), f"{prefix}_ends": ends}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array], prefix: str) -> Ids:
        """Restore an index from the arrays of a file."""
        if f"{prefix}_ids" in arrays:
            return cls(_distinct(arrays[f"{prefix}_ids"], np.int64, f"{prefix}_ids"))
        letters, ends = arrays[f"{prefix}_text"], arrays[f"{prefix}_ends"]
        if letters.dtype != np.uint8 or ends.dtype != np.int64 or letters.ndim != 1 or ends.ndim != 1:
            raise ValueError(f"names of the types {letters.dtype} and {ends.dtype}")
        starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
        if len(ends) and ((starts > ends).any() or ends[-1] != len(letters)):
            raise ValueError(f"'{prefix}_ends' does not divide {len(letters)} bytes")
        text, bounds = letters.tobytes(), zip(starts.tolist(), ends.tolist(), strict=True)
        names = np.array([text[low:high].decode() for low, high in bounds], dtype=np.str_)
        return cls(_distinct(names, None, f"{prefix}_text"))

    @cached_property
    def _sorted(self) -> Array:
        return np.argsort(self.names, kind="stable")


def _distinct(names: Array, kind: type[np.int64] | None, name: str) -> Array:
    if names.ndim != 1 or (kind is not None and names.dtype != kind) or len(np.unique(names)) != len(names):
        raise ValueError(f"'{name}' has names twice, or of the type {names.dtype}")
    return names


def as_names(names: Names) -> Array:
    """Convert names to an array of int64 if all are whole numbers that fit, else to an array of strings.

    >>> as_names([3, 1]).dtype.kind, as_names(["7", 1]).tolist(), as_names([1, 2**63]).tolist()
    ('i', ['7', '1'], ['1', '9223372036854775808'])
    """
    array = np.asarray(names)
    if array.ndim != 1:
        raise DataError(f"names of users and items come one after the other, and here is an array {array.ndim} deep")
    if array.dtype.kind == "f":
        finite = np.isfinite(array)
        if not finite.all():
            at = int(finite.argmin())
            raise DataError(f"the name {array[at]} of a user or an item is not finite", row=at, remedy=_NAME)
        if (array == np.floor(array)).all():
            fit = (abs(array) < _LIMIT).all()
            array = array.astype(np.int64) if fit else np.array([int(name) for name in array], object)
    whole = array.dtype.kind == "O" and all(isinstance(name, (int, np.integer)) for name in array)
    if (whole or array.dtype.kind in "iu") and _fit(array):
        return array.astype(np.int64, copy=False)
    return array if array.dtype.kind == "U" else np.array([str(name) for name in array], dtype=np.str_)


_LIMIT = 2**63  # Names that are whole numbers are smaller. Larger numbers are strings.
_NAME = "Give every user and every item a name, or leave out the rating."


def _fit(numbers: Array) -> bool:
    return not len(numbers) or (int(numbers.min()) >= -_LIMIT and int(numbers.max()) < _LIMIT)


def _converted(names: Array, kind: str, strict: bool = False) -> list[str] | list[int]:
    """Convert names to strings, or to whole numbers where possible.

    A name that is not a number that fits becomes the smallest int64, which is no known name. With ``strict`` such a
    name raises ``DataError``.
    """
    if kind == "U":
        return [str(name) for name in names]
    numbers = [int(name) if name.removeprefix("-").isdecimal() else None for name in names.tolist()]
    numbers = [None if number is None or not -_LIMIT <= number < _LIMIT else number for number in numbers]
    if strict and None in numbers:
        odd = names[numbers.index(None)]
        raise DataError(f"names are whole numbers so far, and here is {odd!r}", remedy="Fit anew, with all names.")
    return [np.iinfo(np.int64).min if number is None else number for number in numbers]


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
        require_structure(matrix)
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
