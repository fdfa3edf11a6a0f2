"""Data set with rows in memory, read from files or given as arrays by the user."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from hogwild.data.chunks import (
    ChunkExtents,
    ListedEpoch,
    OrderedEpoch,
    RowBlocks,
    RowDraws,
    ScatteredEpoch,
    ShuffledEpoch,
    number_type,
    row_numbers,
    rows_per_chunk,
)
from hogwild.data.csr import Array, CSRRows, bytes_of
from hogwild.data.dataset import BLOCK_ROWS, MOST_CLASSES, Dataset, Epoch, Order
from hogwild.data.frequent_first import FrequentFirst, frequent_first
from hogwild.data.random_order import MOST_ROWS, RandomOrder
from hogwild.data.shuffle import gather_most, mixed, random_permutation
from hogwild.data.slices import ENTRIES, in_slices
from hogwild.data.statistics import feature_counts
from hogwild.errors import DataError, ParameterError
from hogwild.lazy import cached_property
from hogwild.machine import available_bytes, recently_available_bytes

if TYPE_CHECKING:
    from hogwild.data.field_vocabulary import FieldVocabulary
    from hogwild.data.present_columns import PresentColumns
    from hogwild.data.tables.table_encoding import TableEncoding

# Elements of each array that enter a fingerprint: from this number to twice this number, or all of a shorter array.
_SAMPLED = 2**14
# Bytes of rows below which the order of the visit does not matter, because the rows stay in the cache of a core.
_NEAR = 2**21
# Smallest number of blocks. With fewer blocks, too much of the order would be the same in every epoch.
_FEWEST_BLOCKS = 64
_GROUP = 8  # Rows that stay together where rows that were not shuffled are visited without a copy of them.
_REMEMBERED = 2**22  # rows of which a permutation is kept in memory
_REPAID = 2  # Number of epochs that regains the time of a copy, at most.
_SHARE = 4  # A copy takes at most one part in four of the available memory.


class InMemoryDataset(Dataset):
    """Data set of checked rows in memory.

    Epochs visit rows that were ``shuffled`` on loading in contiguous chunks, with their blocks in random order. Rows
    that were not shuffled are the user's arrays, or rows whose order matters. Epochs visit them in the order
    ``order(ids, seed, epoch)``.

    Without an ``order`` the number of rows decides. Few rows get a new random permutation in each epoch. Many rows get
    one random permutation, whose chunks and blocks have a new random order in each epoch. A copy of the rows in the
    order of that permutation (:meth:`laid_out`) makes these epochs twice as fast.

    Parameters
    ----------
    rows : CSRRows
        The arrays that hold the rows.
    shuffled : bool
        Whether the rows are stored in random order.
    name : str, default "arrays"
        Origin of the data, for messages.
    base : int, default 0
        Number that was subtracted from the indices of a text file: 0 or 1.
    ids : array of int, optional
        Numbers of the rows that belong to this data set. None means all rows.
    order : callable, optional
        Order of an epoch: ``order(ids, seed, epoch)`` returns as many row numbers, in the order of the visit.
    chunk : int, optional
        Number of rows per chunk. By default the size of the rows decides.
    table : FieldVocabulary, optional
        Field of each column, where the rows come from a file with fields.
    columns : PresentColumns, optional
        Columns by which the rows are numbered, where they have few of very many.
    encoding : TableEncoding, optional
        How columns of a table became features, where the rows come from a table.
    copied : bool, default True
        Whether there may be a copy of the rows in the order of the epochs. False where they take most of the memory.

    Examples
    --------
    >>> from hogwild.data.csr import NO_WEIGHTS
    >>> rows = CSRRows(np.array([0, 2, 3]), np.array([0, 4, 1], np.uint32), np.ones(3, np.float32),
    ...             np.array([1.0, -1.0]), NO_WEIGHTS, features=5, layout="sparse")
    >>> data = InMemoryDataset(rows, shuffled=False, name="example")
    >>> data.n_rows, data.n_features, data.nonzeros, data.labels()
    (2, 5, 3, array([ 1., -1.]))
    >>> [sorted(chunk.order.tolist()) for chunk in [data.epoch(seed=0, number=0)[0]]]
    [[0, 1]]
    """

    rows: CSRRows

    def __init__(
        self,
        rows: CSRRows,
        *,
        shuffled: bool,
        name: str = "arrays",
        base: int = 0,
        ids: Array | None = None,
        order: Order | None = None,
        chunk: int | None = None,
        table: FieldVocabulary | None = None,
        columns: PresentColumns | None = None,
        encoding: TableEncoding | None = None,
        copied: bool = True,
    ) -> None:
        self.encoding, self._copied = encoding, copied
        self.rows, self.shuffled, self.ids, self.order, self.columns = rows, shuffled, ids, order, columns
        self.name, self.base, self.table = name, base, table
        self.n_rows = len(rows) if ids is None else len(ids)
        self.n_features = rows.features
        self.nonzeros = rows.nonzeros if ids is None else _nonzeros_of(rows, ids)
        self._requested_chunk, self.chunk = chunk, chunk or rows_per_chunk(self.n_rows, self.nonzeros)

    def __repr__(self) -> str:
        size = f"{self.n_rows:,} rows x {self.n_features:,} features, {self.nonzeros:,} non-zeros"
        return f"InMemoryDataset({self.name!r}, {size})"

    @property
    def layout(self) -> str:
        """The layout of the rows: sparse, binary or dense."""
        return self.rows.layout

    @property
    def room(self) -> int:
        """The number of bytes that a model may take besides the rows."""
        return recently_available_bytes()

    @cached_property
    def fingerprint(self) -> str:
        """A short digest of the shape and of a sample of the contents."""
        digest = hashlib.blake2b(digest_size=8)
        digest.update(repr((self.n_rows, self.n_features, self.nonzeros, self.rows.layout)).encode())
        start, stop = int(self.rows.indptr[0]), int(self.rows.indptr[-1])
        entries = (self.rows.indices[start:stop], self.rows.values[start:stop])
        ids = () if self.ids is None else (self.ids,)
        for array in (self.rows.indptr, *entries, self.rows.labels, self.rows.weights, *ids):
            digest.update(np.ascontiguousarray(array[:: max(1, len(array) // _SAMPLED)]).tobytes())
        return digest.hexdigest()

    def labels(self) -> Array:
        """Return all labels as float64, in stored order."""
        labels = self.rows.labels if self.ids is None else self.rows.labels[self.ids]
        return labels.astype(np.float64, copy=False)

    def label_counts(self) -> tuple[Array, Array] | None:
        """Return the distinct labels and the number of rows of each; None for more than ``MOST_CLASSES`` labels."""
        labels = self.labels()
        values, counts = _count_two(labels) or np.unique(labels, return_counts=True)
        return (values, counts) if len(values) <= MOST_CLASSES else None

    def frequencies(self) -> Array:
        """Return the number of rows in which each feature is present, as int64."""
        return self._frequencies

    @cached_property
    def _frequencies(self) -> Array:
        counts = feature_counts(self.in_order(), self.n_features, self.nonzeros)
        counts.setflags(write=False)
        return counts

    def epoch(self, seed: int, number: int) -> Epoch:
        """Return the chunks of one epoch in random order, in which each row occurs once unless rows are drawn."""
        if self.shuffled:
            return ShuffledEpoch(_InMemory(self.rows), self._blocks(seed, number))
        if self._in_blocks:
            return ScatteredEpoch(self.rows, self._places(seed), self._blocks(seed, number))
        return ListedEpoch(self.rows, (self.order or permuted)(self._numbers, seed, number), self.chunk)

    def random_epoch(self, seed: int, number: int) -> Epoch:
        """Return an epoch whose order is a formula, unless the rows have an order of their own."""
        if self.order is not None or self.ids is not None or self.n_rows >= MOST_ROWS:
            return self.epoch(seed, number)
        return ListedEpoch(self.rows, RandomOrder(self.n_rows, seed, number), self.chunk)

    def drawn(self, draws: RowDraws) -> InMemoryDataset:
        """Return the same rows with epochs that draw with replacement, each draw from all rows.

        >>> from hogwild.data import open
        >>> data = open(np.eye(4), np.arange(4)).drawn(RowDraws(np.array([1.0, 1.0, 1.0, 5.0])))
        >>> len(data.epoch(seed=0, number=0).whole().order), data.rows.weights
        (4, array([2. , 2. , 2. , 0.4], dtype=float32))
        """
        ids: Array | slice = slice(None) if self.ids is None else self.ids
        rows = replace(self.rows, weights=draws.weighed(self.rows.weights, ids, len(self.rows)))
        return InMemoryDataset(
            rows, shuffled=False, name=self.name, base=self.base, ids=self.ids, order=draws,
            chunk=self._requested_chunk, table=self.table,
        )  # fmt: skip

    def laid_out(
        self, seed: int, epochs: float, numbers: Array | None = None, threads: int | None = None
    ) -> InMemoryDataset | None:
        """Copy the rows into the order in which the epochs of this seed visit them, on some threads or on all cores.

        With ``numbers``, features have new numbers in the copy.

        The function makes a copy only under three conditions. The rows must be too large for the cache. The copy must
        take at most a quarter of the available memory. At least two epochs must follow, to regain the time of the copy.
        Otherwise the function returns None. The epochs of this data set then visit the same rows in the same order, but
        not as fast.

        >>> from hogwild.data import open
        >>> table = np.random.default_rng(0).random((10_000, 60), np.float32)
        >>> data = open(table, np.arange(10_000))
        >>> here, there = data.epoch(0, 1)[0], data.laid_out(seed=0, epochs=5).epoch(0, 1)[0]
        >>> bool((here.rows.labels[here.order] == there.rows.labels[there.order]).all())
        True
        """
        if not self._is_worth_copying(epochs):
            return None
        rows = gather_most(self.rows, self._places(seed), threads, numbers)
        return InMemoryDataset(rows, shuffled=True, name=self.name, base=self.base, chunk=self.chunk, table=self.table)

    def frequent_first(self, seed: int, epochs: float, frequent: int, threads: int) -> FrequentFirst | None:
        """Copy sparse rows as :meth:`laid_out` does, with new numbers of their features, the most frequent first."""
        if self.layout == "dense" or self.ids is not None or not self._is_worth_copying(epochs):
            return None
        return frequent_first(self.rows, random_permutation(len(self.rows), seed), frequent, threads)

    def permuted_anew(self) -> InMemoryDataset:
        """Return the same rows, with epochs that are independent permutations of all rows."""
        return InMemoryDataset(
            self.rows, shuffled=False, name=self.name, base=self.base, ids=self.ids, order=self.order or permuted_soon,
            chunk=self._requested_chunk, table=self.table,
        )  # fmt: skip

    def at_once(self) -> InMemoryDataset:
        """Return this data set, because its rows are in memory."""
        return self

    def _is_worth_copying(self, epochs: float) -> bool:
        useful = not self.shuffled and self._in_blocks and epochs >= _REPAID
        return useful and self._copied and _SHARE * self._size <= available_bytes()

    @property
    def _in_blocks(self) -> bool:
        """Whether epochs keep blocks of rows together, as one random permutation has formed them."""
        return self.order is None and self.n_rows >= _FEWEST_BLOCKS * BLOCK_ROWS and self._size > _NEAR

    @property
    def _size(self) -> int:
        """The number of bytes that the rows of this data set take."""
        return round(bytes_of(self.rows) * self.n_rows / max(1, len(self.rows)))

    @property
    def _numbers(self) -> Array:
        return row_numbers(0, self.n_rows) if self.ids is None else self.ids

    def _places(self, seed: int) -> Array:
        if not self._copied:
            return _grouped_places_of_all(self.n_rows, seed) if self.ids is None else _grouped_places(self.ids, seed)
        if self.ids is None and self.n_rows <= _REMEMBERED:
            return _places_of_all(self.n_rows, seed)
        return _placed(self._numbers, seed)

    def _blocks(self, seed: int, number: int) -> RowBlocks:
        return RowBlocks(ChunkExtents(0, self.n_rows, self.chunk), seed, number)

    def in_order(self) -> Epoch:
        """Return all rows in stored order."""
        if self.ids is not None:
            return ListedEpoch(self.rows, self.ids, self.chunk)
        return OrderedEpoch(_InMemory(self.rows), ChunkExtents(0, self.n_rows, self.chunk))

    def split(self, fraction: float, seed: int) -> tuple[InMemoryDataset, InMemoryDataset]:
        """Split off a random fraction of the rows, and return (the other rows, the rows split off)."""
        aside = rows_set_aside(self.n_rows, fraction)
        kept = self.n_rows - aside
        if self.shuffled:  # Shuffled rows are in random order, so the last rows are a random sample.
            return self._part(self.rows[:kept]), self._part(self.rows[kept:])
        mixed = np.random.default_rng(seed).permutation(self._numbers)
        return self._part(self.rows, np.sort(mixed[:kept])), self._part(self.rows, np.sort(mixed[kept:]))

    def renumbered(self, seed: int, epochs: float, numbers: Array, features: int) -> InMemoryDataset | None:
        """Return a copy in which features have new numbers below ``features``; None where no copy pays.

        The rows of the copy are in the order in which the epochs of this seed visit them.
        """
        copied = self.laid_out(seed, epochs, numbers)
        if (
            copied is None
            and self._copied
            and self.shuffled
            and self._in_blocks
            and _SHARE * self._size <= available_bytes()
        ):
            before = self.rows.indices
            indices = np.empty_like(before)
            in_slices(len(indices), lambda part: np.take(numbers, before[part], out=indices[part], mode="clip"))
            copied = self._part(replace(self.rows, indices=indices), self.ids)
        return None if copied is None else copied._part(replace(copied.rows, features=features), copied.ids)

    def with_labels(self, encode: Callable[[Array], Array]) -> InMemoryDataset:
        """Return the same rows with labels that have passed through ``encode`` once."""
        if self.ids is None:
            return self._part(replace(self.rows, labels=_encoded(encode, self.rows.labels)))
        encoded = _encoded(encode, self.rows.labels[self.ids])
        # Rows outside this part may have labels that ``encode`` does not know.
        labels = np.zeros(len(self.rows), encoded.dtype)
        labels[self.ids] = encoded
        return self._part(replace(self.rows, labels=labels), self.ids)

    def with_rows(self, change: Callable[[CSRRows], CSRRows]) -> InMemoryDataset:
        """Return the same data with rows that have passed through ``change`` once."""
        return self._part(change(self.rows), self.ids)

    def with_columns(self, columns: PresentColumns) -> InMemoryDataset:
        """Return the same data with columns numbered in another order, and without the entries of other columns."""
        return self._part(columns.renumber(self.rows), self.ids, columns)

    def _part(self, rows: CSRRows, ids: Array | None = None, columns: PresentColumns | None = None) -> InMemoryDataset:
        return InMemoryDataset(
            rows, shuffled=self.shuffled, name=self.name, base=self.base, ids=ids, order=self.order,
            chunk=self._requested_chunk, table=self.table, columns=self.columns if columns is None else columns,
            encoding=self.encoding, copied=self._copied,
        )  # fmt: skip


def _placed(numbers: Array, seed: int) -> Array:
    # No epoch uses these seed numbers, which have three elements instead of two.
    return np.random.default_rng([seed, 0, 1]).permutation(numbers)


def _grouped_places(numbers: Array, seed: int) -> Array:
    """Return row numbers in random order, with groups of neighbours together, which are read from memory together.

    >>> placed = _grouped_places(np.arange(20), seed=0)
    >>> sorted(placed.tolist()) == list(range(20)), np.diff(placed[:8]).tolist()
    (True, [1, 1, 1, 1, 1, 1, 1])
    """
    return np.asarray(numbers[_grouped_places_of_all(len(numbers), seed)])


@lru_cache(maxsize=1)
def _grouped_places_of_all(n_rows: int, seed: int) -> Array:
    """Return all row numbers in groups in random order, which samples and epochs share."""
    groups, kind = n_rows // _GROUP, number_type(n_rows)
    firsts: Array = np.random.default_rng([seed, 0, 1]).permutation(groups).astype(kind)
    firsts *= _GROUP
    places: Array = np.empty(n_rows, kind)
    np.add(firsts[:, np.newaxis], np.arange(_GROUP, dtype=kind), out=places[: groups * _GROUP].reshape(groups, _GROUP))
    places[groups * _GROUP :] = np.arange(groups * _GROUP, n_rows, dtype=kind)
    places.setflags(write=False)
    return places


@lru_cache(maxsize=2)
def _places_of_all(n_rows: int, seed: int) -> Array:
    """Return all row numbers in the order of the permutation of a seed, which samples and epochs share."""
    places = _placed(row_numbers(0, n_rows), seed)
    places.setflags(write=False)
    return places


def permuted(ids: Array, seed: int, number: int) -> Array:
    """Return the row numbers of one epoch in random order, independent of the epochs before it."""
    return np.random.default_rng([seed, number]).permutation(ids)


def permuted_soon(ids: Array, seed: int, number: int) -> Array:
    """Return another random order, found several times as soon."""
    return ids[random_permutation(len(ids), mixed(seed, number))]


@dataclass(frozen=True, slots=True)
class _InMemory:
    rows: CSRRows

    def read(self, start: int, stop: int) -> CSRRows:
        return self.rows[start:stop]

    def ahead(self, start: int, stop: int) -> None:
        pass

    def release(self, start: int, stop: int) -> None:
        pass

    def everything(self) -> CSRRows:
        return self.rows


def rows_set_aside(n_rows: int, fraction: float) -> int:
    """Return the number of rows in a fraction: at least one row, and at least one row less than all.

    >>> rows_set_aside(10, 0.25), rows_set_aside(3, 0.01)
    (2, 1)
    """
    if not 0 < fraction < 1:
        raise ParameterError(f"The fraction of rows to set aside must be between 0 and 1. Got {fraction} instead.")
    if n_rows < 2:
        raise DataError("there is one row, which cannot be split", remedy="Give more rows, or set none aside.")
    return min(n_rows - 1, max(1, round(n_rows * fraction)))


def _count_two(labels: Array) -> tuple[Array, Array] | None:
    """Return the two distinct labels in ascending order and their counts, without sorting; None if there are not two.

    >>> _count_two(np.array([1.0, -1.0, 1.0])), _count_two(np.arange(3.0))
    ((array([-1.,  1.]), array([1, 2])), None)
    """
    if not len(labels):
        return None
    first = labels == labels[0]
    other = labels[int(np.argmin(first))]
    counts = int(np.count_nonzero(first)), int(np.count_nonzero(labels == other))
    if sum(counts) != len(labels) or other == labels[0]:
        return None
    order = np.argsort([labels[0], other])
    return np.array([labels[0], other])[order], np.array(counts)[order]


def _encoded(encode: Callable[[Array], Array], labels: Array) -> Array:
    numbers = labels.astype(np.float64, copy=False)
    if len(numbers) <= ENTRIES:
        return np.asarray(encode(numbers))
    return np.concatenate(in_slices(len(numbers), lambda part: encode(numbers[part])))


def _nonzeros_of(rows: CSRRows, ids: Array) -> int:
    return int((rows.indptr[ids.astype(np.int64) + 1] - rows.indptr[ids]).sum())
