"""Writing of a packed folder: shuffled rows, in buckets that fit into memory.

The file of a bucket is a series of records, one for each piece that had rows for the bucket.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hogwild.data.csr import NO_INDICES, NO_VALUES, NO_WEIGHTS, Array, CSRRows, Layout
from hogwild.data.dataset import MOST_CLASSES
from hogwild.data.packing.format import ARRAYS, CHECKSUMS, BlockWriter, Meta, write_meta
from hogwild.data.reader import ReadOptions, Schema, fit_to_schema
from hogwild.data.shuffle import gather
from hogwild.data.statistics import count_features

_HEADER = 6  # Number of 64-bit integers in a header: rows, entries, features, has indices, has values, has weights.
_BUFFER = 2**15  # Bytes of the buffer of a file.
_RECORD = 2**20  # Largest number of entries of a record, so that a bucket can be divided again with bounded memory.


@dataclass(slots=True)
class Bucket:
    """Files of rows whose keys agree in their first ``bits`` bits: one file of each that has divided rows."""

    paths: list[Path]
    bits: int
    rows: int = 0
    entries: int = 0
    kept: bool = False  # Whether others read the files too, so that they stay when they have been read.

    def delete(self) -> None:
        """Delete the files, unless others read them too."""
        for path in () if self.kept else self.paths:
            path.unlink(missing_ok=True)

    def bytes_in_memory(self, layout: Layout) -> int:
        """Return the bytes of memory that sorting the rows takes."""
        per_entry = 8 if layout == "sparse" else 4
        return self.rows * 64 + self.entries * per_entry


class Buckets:
    """Division of rows into files by the next bits of their keys. As a context manager it closes its files."""

    def __init__(self, folder: Path, stem: str, bits_before: int, bits: int) -> None:
        self._shift, self._bits = bits_before, bits
        self.all = [Bucket([folder / f"{stem}-{number:03d}"], bits_before + bits) for number in range(2**bits)]
        self._files: dict[int, BinaryIO] = {}

    def __enter__(self) -> Buckets:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as closing:  # which closes all files, also if one of them fails
            for file in self._files.values():
                closing.callback(file.close)

    def add(self, rows: CSRRows, keys: Array) -> None:
        """Append each row to the bucket of its key."""
        which = ((keys << np.uint64(self._shift)) >> np.uint64(64 - self._bits)).astype(np.int64)
        order = np.argsort(which, kind="stable")
        ends = np.cumsum(np.bincount(which, minlength=2**self._bits))
        for number, (start, stop) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            for part in _parts(rows, order[start:stop]):
                self._write(number, gather(rows, part), keys[part])

    def _write(self, number: int, rows: CSRRows, keys: Array) -> None:
        bucket = self.all[number]
        if number not in self._files:
            self._files[number] = bucket.paths[0].open("wb", buffering=_BUFFER)
        file = self._files[number]
        # A record omits its values, or its weights, if all of them are one.
        values = NO_VALUES if rows.layout != "dense" and (rows.values == 1).all() else rows.values
        weights = NO_WEIGHTS if (rows.weights == 1).all() else rows.weights
        parts = (rows.indices, values, weights)
        header = [len(rows), rows.nonzeros, rows.features, *(part.size > 0 for part in parts)]
        for array in (np.array(header, np.int64), keys, rows.indptr, rows.labels, *parts):
            file.write(np.ascontiguousarray(array).view(np.uint8).data)
        bucket.rows += len(rows)
        bucket.entries += rows.nonzeros


def records(bucket: Bucket, layout: Layout) -> Iterator[tuple[CSRRows, Array]]:
    """Yield the rows of a bucket and their keys, record by record; restore values and weights that were all one."""
    for path in bucket.paths if bucket.rows else ():
        yield from _records(path, layout)


def _records(path: Path, layout: Layout) -> Iterator[tuple[CSRRows, Array]]:
    with path.open("rb", buffering=_BUFFER) as file:
        while (header := _take(file, np.int64, _HEADER)).size:
            n_rows, entries, features, has_indices, has_values, has_weights = (int(number) for number in header)
            keys = _take(file, np.uint64, n_rows)
            indptr = _take(file, np.int64, n_rows + 1)
            labels = _take(file, np.float64, n_rows)
            indices = _take(file, np.uint32, entries) if has_indices else NO_INDICES
            values = _take(file, np.float32, entries) if has_values else np.ones(entries, np.float32)
            weights = _take(file, np.float32, n_rows) if has_weights else np.ones(n_rows, np.float32)
            yield CSRRows(indptr, indices, values, labels, weights, features, layout), keys


def _parts(rows: CSRRows, order: Array) -> Iterator[Array]:
    """Divide a list of rows into parts of about ``_RECORD`` entries at most."""
    if order.size == 0:
        return
    ends = np.cumsum(rows.indptr[order + 1] - rows.indptr[order])
    cuts = np.flatnonzero(np.diff((ends - 1) // _RECORD)) + 1
    yield from np.split(order, cuts)


def _take(file: BinaryIO, kind: type[np.generic], count: int) -> Array:
    data = file.read(count * np.dtype(kind).itemsize)
    return np.frombuffer(data, kind)


_WRITTEN = 2**19  # Elements that are converted at a time.


@dataclass(slots=True)
class LabelSummary:
    """Summary of the labels: range, mean, and the count of each distinct value unless there are too many."""

    counts: dict[float, int] | None = field(default_factory=dict)
    least: float = np.inf
    greatest: float = -np.inf
    total: float = 0.0

    def add(self, labels: Array) -> None:
        self.least, self.greatest = min(self.least, float(labels.min())), max(self.greatest, float(labels.max()))
        self.total += float(labels.sum())
        self.count(*np.unique(labels, return_counts=True))

    def count(self, values: Iterable[float], counts: Iterable[int]) -> None:
        """Add to the count of each value, unless the values are too many already."""
        if self.counts is not None:
            for value, count in zip(values, counts, strict=True):
                self.counts[float(value)] = self.counts.get(float(value), 0) + int(count)
            if len(self.counts) > MOST_CLASSES:
                self.counts = None

    def summary(self, n_rows: int) -> dict[str, Any]:
        known = sorted((self.counts or {}).items())
        return {
            "kind": "few" if self.counts is not None else "many",
            "values": [value for value, _ in known],
            "counts": [count for _, count in known],
            "least": self.least,
            "greatest": self.greatest,
            "mean": self.total / n_rows,
        }


def joined_labels(summaries: Sequence[dict[str, Any]], rows: Sequence[int]) -> dict[str, Any]:
    """Return the summary of the labels of several folders, from their summaries and numbers of rows."""
    whole = LabelSummary()
    for summary, n_rows in zip(summaries, rows, strict=True):
        whole.least, whole.greatest = min(whole.least, summary["least"]), max(whole.greatest, summary["greatest"])
        whole.total += summary["mean"] * n_rows
        whole.count(summary["values"], summary["counts"])
        if summary["kind"] == "many":
            whole.counts = None
    return whole.summary(sum(rows))


@dataclass(frozen=True, slots=True)
class Origin:
    """Memory, seed and files of a packing, which the packed folder notes."""

    memory: int  # Memory limit in bytes.
    seed: int
    sources: list[str]


class PackedWriter:
    """Writer that appends rows to the final arrays. As a context manager it closes its files."""

    def __init__(self, folder: Path, shape: Schema, reading: ReadOptions, origin: Origin) -> None:
        self._folder, self._shape, self._reading, self._origin = folder, shape, reading, origin
        self._stack = ExitStack()
        self._files: dict[str, BlockWriter] = {}
        for array in ARRAYS:
            if array.name in _present(shape):
                self._files[array.name] = BlockWriter(folder / array.file, array)
                self._stack.callback(self._files[array.name].close)
        self.counts = np.zeros(shape.features, np.int64)
        self._labels = LabelSummary()
        self.rows = self.nonzeros = 0

    def __enter__(self) -> PackedWriter:
        self._files["indptr"].write(np.zeros(1, np.int64))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def write(self, rows: CSRRows) -> None:
        """Append rows with raw indices."""
        rows = fit_to_schema(rows, self._shape, self._reading)
        if rows.layout == "dense":
            self.counts += len(rows)
        else:
            rows = replace(rows, indices=rows.indices - np.uint32(self._shape.base))
            count_features(rows.indptr, rows.indices, np.arange(len(rows)), self.counts)
            self._files["indices"].write(rows.indices)
        if "values" in self._files:
            self._files["values"].write(rows.values)
        if "weights" in self._files:
            self._files["weights"].write(rows.weights)
        self._files["labels"].write(rows.labels)
        self._files["indptr"].write(rows.indptr[1:] + self.nonzeros)
        self._labels.add(rows.labels)
        self.rows, self.nonzeros = self.rows + len(rows), self.nonzeros + rows.nonzeros

    def finish(self) -> None:
        """Write the frequencies, the checksums and ``meta.json``, which are complete only after the last row."""
        for at in range(0, len(self.counts), _WRITTEN):
            self._files["frequencies"].write(self.counts[at : at + _WRITTEN])
        for file in self._files.values():
            file.finish()
        checksums = np.array([crc for file in self._files.values() for crc in file.checksums], "<u4").tobytes()
        (self._folder / CHECKSUMS).write_bytes(checksums)
        write_meta(self._folder, Meta(
            rows=self.rows, features=self._shape.features, nonzeros=self.nonzeros, layout=self._shape.layout,
            weighted=self._shape.weighted, base=self._shape.base,
            memory=self._origin.memory, seed=self._origin.seed, checksums=zlib.crc32(checksums),
            sources=self._origin.sources,
            labels=self._labels.summary(self.rows), frequencies=frequency_summary(self.counts),
            encoding=None if self._reading.encoding is None else self._reading.encoding.record(),
        ))  # fmt: skip


def _present(shape: Schema) -> set[str]:
    absent = {"dense": {"indices"}, "binary": {"values"}, "sparse": set[str]()}[shape.layout]
    return {array.name for array in ARRAYS} - absent - (set() if shape.weighted else {"weights"})


def frequency_summary(counts: Array) -> dict[str, int]:
    """Return the number of features that occur, the largest frequency, and the feature that has it."""
    return {
        "present": int(np.count_nonzero(counts)),
        "largest": int(counts.max()),
        "most_frequent": int(counts.argmax()),
    }
