"""A data set whose rows are in memory: read from files, or arrays of the user's own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hogwild.data.csr import Array, CSRRows, bytes_of
from hogwild.data.dataset import BLOCK_ROWS, MOST_CLASSES, Dataset, Epoch, Order
from hogwild.data.extents import (
    ChunkExtents,
    ListedEpoch,
    OrderedEpoch,
    RowBlocks,
    ScatteredEpoch,
    ShuffledEpoch,
    row_numbers,
    rows_per_chunk,
)
from hogwild.data.feature_counts import feature_counts
from hogwild.data.field_vocabulary import FieldVocabulary
from hogwild.data.memory_usage import available_bytes
from hogwild.data.shuffle import gather_most
from hogwild.errors import DataError, ParameterError

_SAMPLED = 2**14  # entries of each array that a fingerprint looks at
_NEAR = 2**21  # bytes of rows that are as good as in a core's cache, in whatever order they are visited
_FEWEST_BLOCKS = 64  # with fewer, too much of the order would be the same in every epoch
_REPAID = 2  # epochs that it takes to win back the time for a copy, or less
_SHARE = 4  # at most one part in so many of the memory that is left goes to a copy


class InMemoryDataset(Dataset):
    """Checked rows in memory.

    Rows that were ``shuffled`` when they were loaded are visited in contiguous chunks, their blocks in random order.
    Rows that are not, because they are the user's arrays or their order matters, are visited as
    ``order(ids, seed, epoch)`` says. Without an ``order`` few rows are visited by a new random permutation each epoch.
    Many are visited by one random permutation, its chunks and their blocks in a new random order each epoch, which can
    be done twice as fast with a copy of them that is :meth:`laid_out` so. ``ids`` are the rows this data set consists
    of; None: all. ``chunk`` is how many rows a chunk has, if that is not to be chosen by their size. ``table`` says of
    which field each column is, where they came from a file that does.

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
    ) -> None:
        self.rows, self.shuffled, self.ids, self.order = rows, shuffled, ids, order
        self.name, self.base, self.table = name, base, table
        self.n_rows = len(rows) if ids is None else len(ids)
        self.n_features = rows.features
        self.nonzeros = rows.nonzeros if ids is None else _nonzeros_of(rows, ids)
        self._asked, self.chunk = chunk, chunk or rows_per_chunk(self.n_rows, self.nonzeros)

    def __repr__(self) -> str:
        return (
            f"Memory({self.name!r}, {self.n_rows:,} rows x {self.n_features:,} features, {self.nonzeros:,} non-zeros)"
        )

    @property
    def layout(self) -> str:
        """How the rows are stored: sparse, binary or dense."""
        return self.rows.layout

    @property
    def room(self) -> int:
        """How many bytes a model may take besides the rows."""
        return available_bytes()

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
        """All labels as float64, in stored order."""
        labels = self.rows.labels if self.ids is None else self.rows.labels[self.ids]
        return labels.astype(np.float64, copy=False)

    def label_counts(self) -> tuple[Array, Array] | None:
        """The distinct labels and how many rows have each; None where there are too many."""
        values, counts = np.unique(self.labels(), return_counts=True)
        return (values, counts) if len(values) <= MOST_CLASSES else None

    def frequencies(self) -> Array:
        """In how many rows each feature is present, as int64."""
        return self._frequencies

    @cached_property
    def _frequencies(self) -> Array:
        counts = feature_counts(self.in_order(), self.n_features, self.nonzeros)
        counts.setflags(write=False)
        return counts

    def epoch(self, seed: int, number: int) -> Epoch:
        """The chunks of one epoch in random order, each row once."""
        if self.shuffled:
            return ShuffledEpoch(_InMemory(self.rows), self._blocks(seed, number))
        if self._in_blocks:
            return ScatteredEpoch(self.rows, self._places(seed), self._blocks(seed, number))
        return ListedEpoch(self.rows, (self.order or permuted)(self._numbers, seed, number), self.chunk)

    def laid_out(self, seed: int, epochs: float) -> InMemoryDataset | None:
        """The same rows in an order in which epochs of this seed visit one row after the other.

        They are copied, on all cores, if there are so many that it matters, the copy takes no more than a quarter of
        the memory that is left, and there is more than one epoch to win back the time. None if not: then the epochs
        of this data set visit the same rows in the same order, only not as fast.

        >>> from hogwild.data import open
        >>> table = np.random.default_rng(0).random((10_000, 60), np.float32)
        >>> data = open(table, np.arange(10_000))
        >>> here, there = data.epoch(0, 1)[0], data.laid_out(seed=0, epochs=5).epoch(0, 1)[0]
        >>> bool((here.rows.labels[here.order] == there.rows.labels[there.order]).all())
        True
        """
        if self.shuffled or not self._in_blocks or epochs < _REPAID or _SHARE * self._size > available_bytes():
            return None
        rows = gather_most(self.rows, self._places(seed))
        return InMemoryDataset(rows, shuffled=True, name=self.name, base=self.base, chunk=self.chunk)

    def at_once(self) -> InMemoryDataset:
        """They are at hand."""
        return self

    @property
    def _in_blocks(self) -> bool:
        """Whether epochs keep blocks of rows together that were brought together once."""
        return self.order is None and self.n_rows >= _FEWEST_BLOCKS * BLOCK_ROWS and self._size > _NEAR

    @property
    def _size(self) -> int:
        """How many bytes the rows of this data set take."""
        return round(bytes_of(self.rows) * self.n_rows / max(1, len(self.rows)))

    @property
    def _numbers(self) -> Array:
        return row_numbers(0, self.n_rows) if self.ids is None else self.ids

    def _places(self, seed: int) -> Array:
        return np.random.default_rng([seed, 0, 1]).permutation(self._numbers)  # no epoch has these numbers

    def _blocks(self, seed: int, number: int) -> RowBlocks:
        return RowBlocks(ChunkExtents(0, self.n_rows, self.chunk), seed, number)

    def in_order(self) -> Epoch:
        """All rows in stored order."""
        if self.ids is not None:
            return ListedEpoch(self.rows, self.ids, self.chunk)
        return OrderedEpoch(_InMemory(self.rows), ChunkExtents(0, self.n_rows, self.chunk))

    def split(self, fraction: float, seed: int) -> tuple[InMemoryDataset, InMemoryDataset]:
        """Set a random fraction of the rows aside: (the rest, the part set aside)."""
        aside = rows_set_aside(self.n_rows, fraction)
        kept = self.n_rows - aside
        if self.shuffled:  # then the last rows are as random as any
            return self._part(self.rows[:kept]), self._part(self.rows[kept:])
        mixed = np.random.default_rng(seed).permutation(self._numbers)
        return self._part(self.rows, np.sort(mixed[:kept])), self._part(self.rows, np.sort(mixed[kept:]))

    def with_labels(self, encode: Callable[[Array], Array]) -> InMemoryDataset:
        """The same rows, their labels passed through ``encode`` once."""
        if self.ids is None:
            return self._part(replace(self.rows, labels=_encoded(encode, self.rows.labels)))
        encoded = _encoded(encode, self.rows.labels[self.ids])
        labels = np.zeros(len(self.rows), encoded.dtype)  # rows outside this part may have labels unknown to encode
        labels[self.ids] = encoded
        return self._part(replace(self.rows, labels=labels), self.ids)

    def with_rows(self, change: Callable[[CSRRows], CSRRows]) -> InMemoryDataset:
        """The same data, its rows passed through ``change`` once."""
        return self._part(change(self.rows), self.ids)

    def _part(self, rows: CSRRows, ids: Array | None = None) -> InMemoryDataset:
        return InMemoryDataset(
            rows, shuffled=self.shuffled, name=self.name, base=self.base, ids=ids, order=self.order, chunk=self._asked,
            table=self.table,
        )  # fmt: skip


def permuted(ids: Array, seed: int, number: int) -> Array:
    """The row numbers of one epoch in random order, whatever the epochs before it were."""
    return np.random.default_rng([seed, number]).permutation(ids)


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
    """How many rows a fraction is: at least one, and at least one stays.

    >>> rows_set_aside(10, 0.25), rows_set_aside(3, 0.01)
    (2, 1)
    """
    if not 0 < fraction < 1:
        raise ParameterError(f"The fraction of rows to set aside must be between 0 and 1. Got {fraction} instead.")
    if n_rows < 2:
        raise DataError("there is one row, which cannot be split", remedy="Give more rows, or set none aside.")
    return min(n_rows - 1, max(1, round(n_rows * fraction)))


def _encoded(encode: Callable[[Array], Array], labels: Array) -> Array:
    return np.asarray(encode(labels.astype(np.float64, copy=False)))


def _nonzeros_of(rows: CSRRows, ids: Array) -> int:
    return int((rows.indptr[ids.astype(np.int64) + 1] - rows.indptr[ids]).sum())
