"""Data set in a packed folder, memory-mapped and possibly larger than memory; other processes reopen it by its path."""

from __future__ import annotations

import hashlib
import platform
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.data.chunks import (
    ChunkExtents,
    DrawnBlocks,
    OrderedEpoch,
    RowBlocks,
    RowDraws,
    ShuffledEpoch,
    rows_per_chunk,
)
from hogwild.data.csr import Array, CSRRows
from hogwild.data.dataset import Dataset, Epoch
from hogwild.data.in_memory import InMemoryDataset, rows_set_aside
from hogwild.data.packing.format import Meta
from hogwild.data.packing.mapped_arrays import MappedRows
from hogwild.data.packing.sharded_rows import ShardedRows, bounds, stored_rows
from hogwild.data.statistics import feature_counts
from hogwild.data.tables.table_encoding import from_record
from hogwild.errors import DataError
from hogwild.lazy import cached_property

Encode = Callable[[Array], Array]
Change = Callable[[CSRRows], CSRRows]


class PackedDataset(Dataset):
    """Data set of the rows of a packed folder, which are stored in shuffled order.

    Chunks are contiguous. Epochs visit chunks in random order, and the blocks of a chunk in random order. The data set
    reads the next chunks ahead. If the folder is larger than half of the memory that is left under ``memory``,
    finished chunks are removed from memory.

    Parameters
    ----------
    folder : path
        A packed folder, as ``pack`` writes it.
    memory : int, optional
        Largest resident memory of the process, in bytes. By default the limit under which the folder was packed.
    verify : bool, default True
        Whether all blocks of a folder of at most 1 GiB are verified at once. Otherwise a block is verified on first
        use.

    Examples
    --------
    >>> import tempfile
    >>> from hogwild.data.packing.pack import pack
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     _ = Path(parent, "a.svm").write_text("1 1:0.5 3:2\\n-1 2:1\\n")
    ...     _ = pack([Path(parent, "a.svm")], Path(parent, "a.packed"))
    ...     data = PackedDataset(Path(parent, "a.packed"))
    ...     data.n_rows, data.frequencies()
    (2, array([1, 1, 1]))
    """

    name: str
    n_rows: int
    n_features: int
    nonzeros: int
    base: int

    def __init__(self, folder: str | Path, memory: int | None = None, *, verify: bool = True) -> None:
        stored = stored_rows(Path(folder), memory, verify)
        self._initialise(stored, _Selection(0, stored.meta.rows))

    def _initialise(self, stored: MappedRows | ShardedRows, selection: _Selection) -> PackedDataset:
        self._stored, self._selection = stored, selection
        self._first, self._last = first, last = selection.first, selection.last
        self.name, self.base = stored.folder.name, stored.meta.base
        self.encoding = None if stored.meta.encoding is None else from_record(stored.meta.encoding)
        self.n_rows, self.n_features = last - first, stored.meta.features
        self.nonzeros = stored.offset(last) - stored.offset(first)
        return self

    def __repr__(self) -> str:
        size = f"{self.n_rows:,} rows x {self.n_features:,} features, {self.nonzeros:,} non-zeros"
        return f"PackedDataset({self.name!r}, {size})"

    @property
    def meta(self) -> Meta:
        """The description of the folder. For a part of the rows it describes all rows too."""
        return self._stored.meta

    @property
    def layout(self) -> str:
        """The layout of the rows: sparse, binary or dense."""
        return self.meta.layout

    @property
    def bounded(self) -> bool:
        """Whether finished chunks are removed from memory."""
        return self._stored.bounded

    @property
    def room(self) -> int:
        """The number of bytes that a model may take besides the rows."""
        return self._stored.room

    @cached_property
    def fingerprint(self) -> str:
        """A short digest of the checksums and of the range of rows."""
        contents = (self.meta.checksums, self.meta.rows, self.meta.nonzeros, self._first, self._last)
        return hashlib.blake2b(repr(contents).encode(), digest_size=8).hexdigest()

    def labels(self) -> Array:
        """Return all labels as float64, in stored order."""
        labels, encode = self._stored.labels(self._first, self._last), self._selection.encode
        return labels if encode is None else np.asarray(encode(labels), np.float64)

    def label_counts(self) -> tuple[Array, Array] | None:
        """Return the distinct labels of the whole folder and the number of rows of each; None for too many labels.

        More than ``MOST_CLASSES`` labels are too many. Labels that are encoded alike are counted together.
        """
        if self.meta.labels.get("kind") != "few":
            return None
        values = np.array(self.meta.labels["values"], np.float64)
        counts = np.array(self.meta.labels["counts"], np.int64)
        if self._selection.encode is None:
            return values, counts
        encoded = np.asarray(self._selection.encode(values), np.float64)
        distinct, which = np.unique(encoded, return_inverse=True)
        together = np.zeros(len(distinct), np.int64)
        np.add.at(together, which, counts)
        return distinct, together

    def frequencies(self) -> Array:
        """Return the number of rows in which each feature is present, as int64."""
        return self._frequencies

    @cached_property
    def _frequencies(self) -> Array:
        """The number of rows in which each feature is present, for this range of rows.

        The stored frequencies are for all rows. For a part of at least half of the rows, the property subtracts the
        counts of the other rows. For a smaller part it counts the rows of the part itself. In a folder of shards, a
        part has its share of all frequencies, because rows may be on other machines: each part is a random sample.
        """
        if self.sharded and self.n_rows < self.meta.rows:
            return np.asarray(-(-self._stored.frequencies() * self.n_rows // self.meta.rows), np.int64)
        left_out = [part for part in ((0, self._first), (self._last, self.meta.rows)) if part[0] < part[1]]
        if 2 * self.n_rows < self.meta.rows:
            return self._counted(self._first, self._last)
        frequencies = self._stored.frequencies()
        for part in left_out:
            frequencies = frequencies - self._counted(*part)
        return frequencies

    def _counted(self, first: int, last: int) -> Array:
        nonzeros = self._stored.offset(last) - self._stored.offset(first)
        extents = ChunkExtents(first, last, rows_per_chunk(last - first, nonzeros))
        return feature_counts(OrderedEpoch(self._stored, extents), self.n_features, nonzeros)

    def epoch(self, seed: int, number: int) -> Epoch:
        """Return the chunks of one epoch in random order, in which each row occurs once unless rows are drawn."""
        extents, draws = self._extents(), self._selection.draws
        blocks = RowBlocks(extents, seed, number) if draws is None else DrawnBlocks(extents, draws, seed, number)
        return ShuffledEpoch(self._source(), blocks)

    def drawn(self, draws: RowDraws) -> PackedDataset:
        """Return the same rows with epochs that draw with replacement; an epoch still reads each chunk once.

        The draws from one chunk follow each other, because draws from all rows would read the folder at random places.
        """
        return self._with(draws=draws)

    def laid_out(self, seed: int, epochs: float, numbers: Array | None = None) -> None:
        """Return None: a copy is not faster, because packing has stored the rows in random order."""

    def at_once(self) -> InMemoryDataset | None:
        """Return the mapped rows, which all processes of a machine share; None if memory is too small for them.

        Encoded labels and changed rows are in a copy.
        """
        if self.bounded:
            return None
        rows = self._stored.all_of(self._first, self._last)
        found = InMemoryDataset(
            self._selection.changed(rows), shuffled=True, name=self.name, base=self.base, table=self.table,
            encoding=self.encoding,
        )  # fmt: skip
        draws = self._selection.draws
        return found if draws is None else found.drawn(draws)

    def __reduce__(self) -> tuple[Callable[..., PackedDataset], tuple[object, ...]]:
        """Pickle the data set as a path: another process opens the folder again."""
        stored = self._stored
        where = stored.folder.absolute(), stored.requested_memory, stored.meta.checksums, stored.bounded
        return _reopened, (*where, self._selection)

    def in_order(self) -> Epoch:
        """Return all rows in stored order."""
        return OrderedEpoch(self._source(), self._extents())

    def split(self, fraction: float, seed: int) -> tuple[PackedDataset, PackedDataset]:
        """Split off the last rows, which are a random sample, and return (the other rows, the rows split off)."""
        kept = self._last - rows_set_aside(self.n_rows, fraction)
        return self._part(self._first, kept), self._part(kept, self._last)

    def shard(self, number: int, of: int) -> PackedDataset:
        """Return one of several parts of about the same size: a random sample, as the stored order is random."""
        first, last = bounds(self.n_rows, of)[number : number + 2]
        return self._part(self._first + first, self._first + last)

    @property
    def sharded(self) -> bool:
        """Whether the folder is in shards, of which this machine may have a part."""
        return isinstance(self._stored, ShardedRows)

    def here(self) -> PackedDataset:
        """Return the rows that this machine has: the longest run of them, if shards are missing."""
        if not isinstance(self._stored, ShardedRows):
            return self
        first, last = self._stored.here()
        first, last = max(first, self._first), min(last, self._last)
        return self if (first, last) == (self._first, self._last) or first >= last else self._part(first, last)

    def folders(self) -> list[Path]:
        """Return the folders that have these rows: shards, or the folder in one piece."""
        stored = self._stored
        found = stored.folders(self._first, self._last) if isinstance(stored, ShardedRows) else [stored.folder]
        return [folder.absolute() for folder in found]

    def contains(self, other: PackedDataset) -> bool:
        """Return whether the rows of another part of the same folder are among these."""
        return self._first <= other._first and other._last <= self._last

    def with_labels(self, encode: Encode) -> PackedDataset:
        """Return the same rows; the labels of each chunk pass through ``encode``."""
        before = self._selection.encode
        return self._with(encode=encode if before is None else _Both(before, encode))

    def with_rows(self, change: Change) -> PackedDataset:
        """Return the same data; the rows of each chunk pass through ``change``."""
        before = self._selection.change
        return self._with(change=change if before is None else _Both(before, change))

    def _part(self, first: int, last: int) -> PackedDataset:
        return self._with(first=first, last=last, draws=None)

    def _with(self, **changed: Any) -> PackedDataset:
        selection = replace(self._selection, **changed)
        return PackedDataset.__new__(PackedDataset)._initialise(self._stored, selection)

    def _extents(self) -> ChunkExtents:
        return ChunkExtents(self._first, self._last, rows_per_chunk(self.n_rows, self.nonzeros))

    def _source(self) -> MappedRows | ShardedRows | _Changed:
        return self._stored if self._selection.unchanged else _Changed(self._stored, self._selection)


@dataclass(frozen=True, slots=True, eq=False)
class _Selection:
    """Range of the rows of a folder, and what is changed in them when they are read."""

    first: int
    last: int
    encode: Encode | None = None
    change: Change | None = None
    draws: RowDraws | None = None  # None: each epoch visits each row once.

    @property
    def unchanged(self) -> bool:
        """Whether rows are as they are stored."""
        return self.encode is None and self.change is None and (self.draws is None or self.draws.chances is None)

    def changed(self, rows: CSRRows) -> CSRRows:
        """Return rows with encoded labels, and with other changes of rows."""
        if self.encode is not None:
            rows = replace(rows, labels=np.asarray(self.encode(rows.labels)))
        return rows if self.change is None else self.change(rows)

    def weighed(self, rows: CSRRows, start: int) -> CSRRows:
        """Return the rows from ``start`` on with the weights that make up for the frequency of their draws."""
        if self.draws is None or self.draws.chances is None:
            return rows
        factors = self.draws.factors[start - self.first :][: len(rows)].astype(rows.weights.dtype)
        return replace(rows, weights=rows.weights * factors if rows.weights.size else factors)


@dataclass(frozen=True, slots=True)
class _Both:
    """Two functions one after the other, in a form that can be pickled."""

    first: Callable[[Any], Any]
    second: Callable[[Any], Any]

    def __call__(self, given: Any) -> Any:
        return self.second(self.first(given))


@dataclass(frozen=True, slots=True)
class _Changed:
    """Stored rows that are changed when they are read."""

    stored: MappedRows | ShardedRows
    selection: _Selection

    def read(self, start: int, stop: int) -> CSRRows:
        return self.selection.weighed(self.selection.changed(self.stored.read(start, stop)), start)

    def ahead(self, start: int, stop: int) -> None:
        self.stored.ahead(start, stop)

    def release(self, start: int, stop: int) -> None:
        self.stored.release(start, stop)

    def everything(self) -> None:
        pass


def _reopened(folder: Path, memory: int | None, checksums: int, bounded: bool, selection: _Selection) -> PackedDataset:
    stored = reopen(folder, memory, checksums)
    stored.bounded = bounded  # All processes of a run read the rows in the same way.
    return PackedDataset.__new__(PackedDataset)._initialise(stored, selection)


_open: weakref.WeakValueDictionary[tuple[Path, int | None, int], MappedRows | ShardedRows] = (
    weakref.WeakValueDictionary()
)


def reopen(folder: Path, memory: int | None, checksums: int) -> MappedRows | ShardedRows:
    """Open a folder that another process has opened; raise ``DataError`` if the folder is absent or differs.

    A block is verified when it is first read. A process that only forwards the data set reads no block, so it verifies
    none.

    >>> reopen(Path("/not/there"), None, 0)
    Traceback (most recent call last):
    hogwild.errors.DataError: /not/there/meta.json: ... on the machine ... Put the folder ...
    """
    found = _open.get((folder, memory, checksums))
    if found is not None:
        return found
    machine = f"on the machine {platform.node()!r}"
    try:
        stored = stored_rows(folder, memory, verify=False)
    except DataError as error:
        remedy = (
            "Put the folder where every node finds it under this path, such as on a disk that they share. Or train on "
            "the files that it was made of: their rows are sent to the nodes."
        )
        raise DataError(f"{error.what} {machine}", path=error.path or folder, remedy=remedy) from None
    if stored.meta.checksums != checksums:
        what = f"the folder {machine} is another than the one that was opened first"
        raise DataError(what, path=folder, remedy="Copy it to every node again.")
    _open[folder, memory, checksums] = stored
    return stored
