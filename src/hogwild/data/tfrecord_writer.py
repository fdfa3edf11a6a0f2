"""Writer of TFRecord files: one ``tf.train.Example`` per row, with ``nz_idx``, ``nz_values`` and ``label``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hogwild.data.compression import packing
from hogwild.data.csr import Array, CSRRows
from hogwild.data.readers.tfrecord_parser import masked_crc
from hogwild.errors import DataError, ParameterError
from hogwild.files import replacing
from hogwild.jit import compiled, compiled_part

_MOST = 120  # Largest number of bytes of a record besides its indices and values.
_FLOAT, _INTEGER = 0x12, 0x1A  # Keys of the lists of a Feature: float_list and int64_list.
NAMES = tuple(np.frombuffer(name, np.uint8) for name in (b"nz_idx", b"nz_values", b"label"))


class RecordWriter:
    """Context manager that writes rows as records of a TFRecord file.

    The file gets its name only after all records are written, so an incomplete file never has this name.

    Parameters
    ----------
    path : path
        The file to write. A name that ends in ``.gz``, ``.bz2`` or ``.zst`` makes a compressed file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with RecordWriter(Path(folder, "a.tfrecord")) as writer:
    ...         writer.write([5, 2], None, 0)  # every value is one: none is written
    ...     Path(folder, "a.tfrecord").stat().st_size
    52
    """

    def __init__(self, path: str | Path) -> None:
        self._path, self._open = Path(path), ExitStack()

    def __enter__(self) -> RecordWriter:
        """Open a temporary file."""
        file: Any = self._open.enter_context(replacing(self._path))
        self._file = self._open.enter_context(packing(self._path, file))
        return self

    def __exit__(self, *failed: Any) -> None:
        """Give the file its name, unless an exception occurred."""
        self._open.__exit__(*failed)

    def write(self, indices: ArrayLike, values: ArrayLike | None, label: float) -> None:
        """Write one record.

        Parameters
        ----------
        indices : array of int
            Columns of the non-zeros, counted from 0.
        values : array of float or None
            Value of each non-zero, as many as indices. None means that every value is 1.
        label : float
            Label of the row.

        Raises
        ------
        ParameterError
            If the indices are not a row of whole numbers from 0 on, or if the number of values differs from theirs.
        """
        columns = np.asarray(indices)
        if columns.ndim != 1 or columns.dtype.kind not in "iu" or (columns.size and columns.min() < 0):
            if columns.size or columns.ndim != 1:
                raise ParameterError(f"Indices must be a row of whole numbers from 0 on. Got {indices!r} instead.")
            columns = columns.astype(np.int64)
        given = np.empty(0, np.float32) if values is None else np.asarray(values, np.float32)
        if values is not None and given.shape != columns.shape:
            raise ParameterError(f"There must be as many values as indices. Got {given.size} and {columns.size}.")
        layout: Any = "binary" if values is None else "sparse"
        offsets = np.array([0, columns.size])
        self.write_rows(CSRRows(offsets, columns, given, np.array([float(label)]), given[:0], 0, layout))

    def write_rows(self, rows: CSRRows) -> None:
        """Write a record for each row.

        Parameters
        ----------
        rows : CSRRows
            Rows in the sparse or binary layout.

        Raises
        ------
        DataError
            If the rows are dense, and therefore have no indices.
        """
        if rows.layout == "dense":
            raise DataError("dense rows have no indices to write", path=self._path, remedy="Write sparse rows.")
        self._file.write(encoded(rows).data)


def encoded(rows: CSRRows) -> Array:
    """Return the records of rows, as bytes."""
    binary = rows.layout == "binary"
    out = np.empty(len(rows) * _MOST + rows.nonzeros * (10 + 4 * (not binary)), np.uint8)
    whole = bool((rows.labels == np.floor(rows.labels)).all()) and bool((np.abs(rows.labels) < 2**53).all())
    size = _encode(
        rows.indptr, rows.indices.astype(np.int64), rows.values.astype(np.float32, copy=False),
        rows.labels.astype(np.float64), binary, whole, out, NAMES,
    )  # fmt: skip
    return out[:size]


@compiled_part
def put(out: Array, at: int, number: np.uint64) -> int:
    """Write a number with seven bits per byte at ``at``, and return its end."""
    while number >= np.uint64(0x80):
        out[at] = np.uint8(number & np.uint64(0x7F)) | np.uint8(0x80)
        number >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(number)
    return at + 1


@compiled_part
def size_of(number: np.uint64) -> int:
    """Return the number of bytes that a number takes with seven bits per byte."""
    size = 1
    while number >= np.uint64(0x80):
        number >>= np.uint64(7)
        size += 1
    return size


@compiled_part
def put_fixed(out: Array, at: int, number: np.uint64, size: int) -> int:
    """Write a number as ``size`` bytes in little-endian order at ``at``, and return its end."""
    for k in range(size):
        out[at + k] = np.uint8((number >> np.uint64(8 * k)) & np.uint64(0xFF))
    return at + size


@compiled_part
def entry_size(name: Array, content: int) -> Any:
    """Return the number of bytes of a map entry, without its own key and length."""
    packed = 1 + size_of(np.uint64(content)) + content
    listed = 1 + size_of(np.uint64(packed)) + packed
    return 2 + len(name) + 1 + size_of(np.uint64(listed)) + listed


@compiled_part
def put_entry(out: Array, at: int, name: Array, kind: int, content: int) -> Any:
    """Write the start of a map entry, up to its numbers, which take ``content`` bytes; return its end."""
    packed = 1 + size_of(np.uint64(content)) + content
    listed = 1 + size_of(np.uint64(packed)) + packed
    out[at] = 0x0A
    at = put(out, at + 1, np.uint64(entry_size(name, content)))
    out[at], out[at + 1] = 0x0A, len(name)
    out[at + 2 : at + 2 + len(name)] = name
    at += 2 + len(name)
    out[at] = 0x12
    at = put(out, at + 1, np.uint64(listed))
    out[at] = kind
    at = put(out, at + 1, np.uint64(packed))
    out[at] = 0x0A
    return put(out, at + 1, np.uint64(content))


@compiled
def _encode(
    indptr: Array, indices: Array, values: Array, labels: Array, binary: bool, whole: bool, out: Array,
    names: tuple[Array, ...],
) -> Any:  # fmt: skip
    at = 0
    single = np.empty(1, np.float32)
    bits = values.view(np.uint32)
    bits_of_label = single.view(np.uint32)
    for row in range(len(labels)):
        start, stop = indptr[row], indptr[row + 1]
        index_bytes, number = 0, np.uint64(np.int64(labels[row]))
        for k in range(start, stop):
            index_bytes += size_of(np.uint64(indices[k]))
        label_bytes = size_of(number) if whole else 4
        sizes = np.array([index_bytes, 4 * (stop - start), label_bytes])
        features = 0
        for k in range(3):
            if k != 1 or not binary:
                entry = entry_size(names[k], sizes[k])
                features += 1 + size_of(np.uint64(entry)) + entry
        record = at
        at = put(out, at + 12, np.uint64(0x0A))
        at = put(out, at, np.uint64(features))
        at = put_entry(out, at, names[0], _INTEGER, sizes[0])
        for k in range(start, stop):
            at = put(out, at, np.uint64(indices[k]))
        if not binary:
            at = put_entry(out, at, names[1], _FLOAT, sizes[1])
            for k in range(start, stop):
                at = put_fixed(out, at, np.uint64(bits[k]), 4)
        at = put_entry(out, at, names[2], _INTEGER if whole else _FLOAT, sizes[2])
        if whole:
            at = put(out, at, number)
        else:
            single[0] = labels[row]
            at = put_fixed(out, at, np.uint64(bits_of_label[0]), 4)
        put_fixed(out, record, np.uint64(at - record - 12), 8)
        put_fixed(out, record + 8, np.uint64(masked_crc(out, record, record + 8)), 4)
        at = put_fixed(out, at, np.uint64(masked_crc(out, record + 12, at)), 4)
    return at
