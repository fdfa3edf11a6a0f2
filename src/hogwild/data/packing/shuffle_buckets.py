"""Buckets of an external shuffle: files of rows whose keys start with the same bits.

The file of a bucket is a series of records, one for each piece that had rows for the bucket.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from hogwild.data.csr import NO_INDICES, NO_VALUES, NO_WEIGHTS, Array, CSRRows, Layout
from hogwild.data.shuffle import gather

_HEADER = 6  # Number of 64-bit integers in a header: rows, entries, features, has indices, has values, has weights.
_BUFFER = 2**15  # Bytes of the buffer of a file.
_RECORD = 2**20  # Largest number of entries of a record, so that a bucket can be divided again with bounded memory.


@dataclass(slots=True)
class Bucket:
    """File of rows whose keys agree in their first ``bits`` bits."""

    path: Path
    bits: int
    rows: int = 0
    entries: int = 0

    def bytes_in_memory(self, layout: Layout) -> int:
        """Return the bytes of memory that sorting the rows takes."""
        per_entry = 8 if layout == "sparse" else 4
        return self.rows * 64 + self.entries * per_entry


class Buckets:
    """Division of rows into files by the next bits of their keys. As a context manager it closes its files."""

    def __init__(self, folder: Path, stem: str, bits_before: int, bits: int) -> None:
        self._shift, self._bits = bits_before, bits
        self.all = [Bucket(folder / f"{stem}-{number:03d}", bits_before + bits) for number in range(2**bits)]
        self._files: dict[int, BinaryIO] = {}

    def __enter__(self) -> Buckets:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()

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
            self._files[number] = bucket.path.open("wb", buffering=_BUFFER)
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
    if bucket.rows == 0:
        return
    with bucket.path.open("rb", buffering=_BUFFER) as file:
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
