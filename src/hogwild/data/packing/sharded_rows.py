"""Rows of a packed folder in shards, of which a machine needs only those that its workers read.

    shards.json       description of all rows, and the rows and checksums of each shard, with a digest of itself
    frequencies.i64   number of rows in which each feature is present, over all shards
    shard-0000 ...    packed folders (:mod:`hogwild.data.packing.format`)

Rows are numbered through all shards, in random order, so each shard is a random sample.
"""

from __future__ import annotations

import platform
import re
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.data.csr import Array, CSRRows, compact, concatenate
from hogwild.data.packing.format import (
    AGAIN,
    ARRAYS,
    CHECKSUMS,
    META,
    Meta,
    check_meta,
    content,
    read_description,
    read_meta,
    write_description,
)
from hogwild.data.packing.mapped_arrays import MappedRows
from hogwild.data.packing.writer import Origin, PackedWriter, frequency_summary, joined_labels
from hogwild.data.reader import ReadOptions, Schema
from hogwild.errors import DataError
from hogwild.machine import available_bytes, resident_bytes

FORMAT, VERSION = "hogwild packed shards", 1
_SHARD = re.compile(r"shard-\d{4,}$")
SHARDS, FREQUENCIES = "shards.json", "frequencies.i64"


def is_packed(folder: Path) -> bool:
    """Return whether a folder is a packed one, in one piece or in shards."""
    return (folder / META).is_file() or (folder / SHARDS).is_file()


def foreign_files(folder: Path) -> list[str]:
    """Return the names in a packed folder that packing has not written, in order."""
    ours = {META, CHECKSUMS, SHARDS, FREQUENCIES, *(array.file for array in ARRAYS)}
    return sorted(path.name for path in folder.iterdir() if path.name not in ours and not _SHARD.match(path.name))


def stored_rows(folder: Path, memory: int | None, verify: bool) -> MappedRows | ShardedRows:
    """Open the rows of a packed folder, in one piece or in shards."""
    return ShardedRows(folder, memory) if (folder / SHARDS).is_file() else MappedRows(folder, memory, verify)


def shard_name(number: int) -> str:
    """Return the name of a shard's folder.

    >>> shard_name(12)
    'shard-0012'
    """
    return f"shard-{number:04d}"


def bounds(rows: int, shards: int) -> list[int]:
    """Return the first row of each shard, and the number of rows after the last.

    >>> bounds(10, 3)
    [0, 3, 7, 10]
    """
    return [round(rows * number / shards) for number in range(shards + 1)]


@dataclass(frozen=True, slots=True)
class ShardList:
    """Contents of ``shards.json``."""

    meta: Meta  # description of the rows of all shards
    rows: list[int]  # rows of each shard
    nonzeros: list[int]
    checksums: list[int]  # checksum of each shard's checksums
    frequencies: int  # CRC-32 of the file of frequencies

    def write(self, folder: Path) -> None:
        """Write the file."""
        write_description(folder / SHARDS, FORMAT, VERSION, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> ShardList:
        """Read and check the file."""
        path = folder / SHARDS
        description = read_description(path, FORMAT, VERSION)
        try:
            meta = Meta(**description["meta"])
            found = cls(meta, *(description[name] for name in ("rows", "nonzeros", "checksums", "frequencies")))
            fits = sum(found.rows) == meta.rows and sum(found.nonzeros) == meta.nonzeros
            fits = fits and len(found.rows) == len(found.nonzeros) == len(found.checksums)
        except (KeyError, TypeError) as error:
            raise DataError(f"it is incomplete ({error})", path=path, remedy=AGAIN) from None
        check_meta(meta, path)
        if not fits:
            raise DataError("the sizes it gives make no sense", path=path, remedy=AGAIN)
        return found


class ShardedRows:
    """Rows of all shards, numbered through. A shard is opened when one of its rows is read."""

    def __init__(self, folder: Path, memory: int | None) -> None:
        self.folder, self.listed = folder, ShardList.read(folder)
        self.meta = self.listed.meta
        self.memory, self.requested_memory = self.meta.memory if memory is None else memory, memory
        total = sum(size for _, size in self.meta.files())
        self.bounded = total > (self.memory - resident_bytes()) // 2
        self._starts = np.concatenate([[0], np.cumsum(self.listed.rows)])
        self._offsets = np.concatenate([[0], np.cumsum(self.listed.nonzeros)])
        self._open: dict[int, MappedRows] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.listed.rows)

    def labels(self, start: int, stop: int) -> Array:
        """Return the labels of these rows, as float64."""
        found = [shard.labels(first, last) for shard, first, last in self._pieces(start, stop)]
        return np.concatenate(found) if found else np.empty(0)

    def offset(self, row: int) -> int:
        """Return the position of the first entry of a row among the entries of all shards."""
        number = int(np.searchsorted(self._starts, row, side="right")) - 1
        if self._starts[number] == row:
            return int(self._offsets[number])
        return int(self._offsets[number]) + self._shard(number).offset(row - int(self._starts[number]))

    def frequencies(self) -> Array:
        """Return the number of rows, among all rows, in which each feature is present."""
        path = self.folder / FREQUENCIES
        found = content(path, 8 * self.meta.features)
        if len(found) != 8 * self.meta.features or zlib.crc32(found) != self.listed.frequencies:
            raise DataError("the file is damaged: its checksum does not match", path=path, remedy=AGAIN)
        return np.frombuffer(found, "<i8").astype(np.int64)

    def read(self, start: int, stop: int) -> CSRRows:
        """Return the rows from ``start`` up to ``stop``, checked."""
        return concatenate([shard.read(first, last) for shard, first, last in self._pieces(start, stop)])

    def all_of(self, start: int, stop: int) -> CSRRows:
        """Return a copy of these rows, checked."""
        return self.read(start, stop)

    def ahead(self, start: int, stop: int) -> None:
        """Start reading these rows from the disk."""
        for shard, first, last in self._pieces(start, stop):
            shard.ahead(first, last)

    def release(self, start: int, stop: int) -> None:
        """Remove these rows from memory if memory is limited; the next read loads them from the file again."""
        for shard, first, last in self._pieces(start, stop):
            shard.release(first, last)

    def everything(self) -> None:
        """Return None, because the rows are on disk."""

    @property
    def room(self) -> int:
        """The number of bytes that may become resident besides the resident bytes."""
        limited = self.bounded and self.requested_memory is not None
        return max(0, self.memory - resident_bytes()) if limited else available_bytes()

    def here(self) -> tuple[int, int]:
        """Return the first and the last row of the longest run of shards that this machine has.

        Raises
        ------
        DataError
            If this machine has no shard.
        """
        best = first = 0, 0
        for number in range(len(self)):
            present = (self.folder / shard_name(number) / META).is_file()
            first = (first[0], number + 1) if present else (number + 1, number + 1)
            best = max(best, first, key=lambda run: int(self._starts[run[1]] - self._starts[run[0]]))
        if best[0] == best[1]:
            raise self._missing(0)
        return int(self._starts[best[0]]), int(self._starts[best[1]])

    def folders(self, start: int, stop: int) -> list[Path]:
        """Return the folders of the shards that have these rows."""
        first, last = np.searchsorted(self._starts, [start, stop - 1], side="right") - 1
        return [self.folder / shard_name(number) for number in range(int(first), int(last) + 1)]

    def _pieces(self, start: int, stop: int) -> Iterator[tuple[MappedRows, int, int]]:
        """Yield the shards of these rows, with the first and the last row of each."""
        while start < stop:
            number = int(np.searchsorted(self._starts, start, side="right")) - 1
            first, last = int(self._starts[number]), int(self._starts[number + 1])
            yield self._shard(number), start - first, min(stop, last) - first
            start = last

    def _shard(self, number: int) -> MappedRows:
        with self._lock:
            found = self._open.get(number)
            if found is None:
                folder = self.folder / shard_name(number)
                if not (folder / META).is_file():
                    raise self._missing(number)
                found = MappedRows(folder, self.requested_memory, verify=False)
                if found.meta.checksums != self.listed.checksums[number]:
                    raise DataError("this shard belongs to other data", path=folder, remedy="Copy it here again.")
                found.bounded = self.bounded
                self._open[number] = found
        return found

    def _missing(self, number: int) -> DataError:
        return DataError(
            f"this shard is not on the machine {platform.node()!r}",
            path=self.folder / shard_name(number),
            remedy="Copy it here. With as many workers as shards, worker k reads shard k.",
        )


class ShardedWriter:
    """Writer that divides rows among shards of the same size, one after the other."""

    def __init__(
        self, folder: Path, shape: Schema, reading: ReadOptions, origin: Origin, rows: int, shards: int
    ) -> None:
        self._folder, self._given = folder, (shape, reading, origin)
        self._ends = bounds(rows, shards)[1:]
        self._counts = np.zeros(shape.features, np.int64)
        self._stack = ExitStack()
        self._writer: PackedWriter | None = None
        self._folders: list[Path] = []
        self.rows = 0

    def __enter__(self) -> ShardedWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def write(self, rows: CSRRows) -> None:
        """Append rows with raw indices."""
        at = 0
        while at < len(rows):
            if self._writer is None:
                self._folders.append(self._folder / shard_name(len(self._folders)))
                self._folders[-1].mkdir()
                self._writer = self._stack.enter_context(PackedWriter(self._folders[-1], *self._given))
            end = min(len(rows), at + self._ends[len(self._folders) - 1] - self.rows)
            self._writer.write(compact(rows[at:end]))
            self.rows, at = self.rows + end - at, end
            if self.rows == self._ends[len(self._folders) - 1]:
                self._end_shard()

    def _end_shard(self) -> None:
        assert self._writer is not None
        self._counts += self._writer.counts
        self._writer.finish()
        self._stack.close()
        self._writer = None

    def finish(self) -> None:
        """Write the description of all shards."""
        write_shard_list(self._folder, [read_meta(folder) for folder in self._folders], self._counts)


def write_shard_list(folder: Path, metas: list[Meta], counts: Array) -> None:
    """Write the description of all shards, and the number of rows in which each feature is present."""
    frequencies = counts.astype("<i8", copy=False).data
    (folder / FREQUENCIES).write_bytes(frequencies)
    checksums, rows = [meta.checksums for meta in metas], [meta.rows for meta in metas]
    whole: dict[str, Any] = {
        "rows": sum(rows), "nonzeros": sum(meta.nonzeros for meta in metas),
        "checksums": zlib.crc32(np.array(checksums, "<u4").tobytes()),
        "labels": joined_labels([meta.labels for meta in metas], rows), "frequencies": frequency_summary(counts),
    }  # fmt: skip
    ShardList(
        replace(metas[0], **whole), rows, [meta.nonzeros for meta in metas], checksums,
        zlib.crc32(frequencies),
    ).write(folder)  # fmt: skip


def summed_frequencies(shards: Sequence[Path]) -> Array:
    """Return the number of rows in which each feature is present, over the folders of shards."""
    total: Array = np.fromfile(shards[0] / FREQUENCIES, "<i8").astype(np.int64)
    for folder in shards[1:]:
        total += np.fromfile(folder / FREQUENCIES, "<i8")
    return total
