"""TFRecord files of ``tf.train.Example``: ``nz_idx`` (whole numbers), ``nz_values`` (absent: all ones), ``label``.

Both checksums of every record are checked. GZIP files are recognised by their first bytes.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.data.csr import NO_WEIGHTS, Array, CSRRows
from hogwild.data.prefetch import map_in_order, reader_threads
from hogwild.data.reader import LARGEST_INDEX, Reader, ReadOptions
from hogwild.data.sum_duplicates import merge_duplicates
from hogwild.data.tfrecord import parser
from hogwild.data.tfrecord.crc32c import masked_crc
from hogwild.errors import DataError

NAMES = tuple(np.frombuffer(name, np.uint8) for name in (b"nz_idx", b"nz_values", b"label"))
_BYTES_PER_BYTE = 2  # an index and its value are 7 bytes of a file or so, and 8 of memory; and both are held
_LEAST = 1 << 12
_AGAIN = "Make or fetch the file again."
_FEATURES = "An Example must have nz_idx (int64), nz_values (float, or none at all if every value is 1) and label."
_FAULTS = {
    parser.LENGTH: ("the checksum of the record's length does not match", "The file is damaged, or no TFRecord file."),
    parser.CONTENT: ("the checksum of the record does not match", _AGAIN),
    parser.CUT: ("the file ends within the record", _AGAIN),
    parser.PROTOCOL: ("the record is not a tf.train.Example with lists of the right kinds", _FEATURES),
    parser.NO_INDICES: ("the record has no feature nz_idx", _FEATURES),
    parser.NO_LABEL: ("the record has no label, or several", _FEATURES),
    parser.COUNT: ("the record has not as many nz_values as nz_idx", _FEATURES),
    parser.INDEX: (f"an index is negative or larger than {LARGEST_INDEX:,}", "Number the features from 0."),
    parser.VALUE: ("a value is not a finite number", "Replace or leave out missing and infinite values."),
    parser.LABEL: ("the label is not a finite number", "Replace or leave out the record."),
}


def read(path: Path, reading: ReadOptions, piece_bytes: int) -> Iterator[CSRRows]:
    """Yield the rows of a file in pieces.

    >>> import tempfile
    >>> from hogwild.data.tfrecord.writer import RecordWriter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with RecordWriter(Path(folder, "a.tfrecord")) as writer:
    ...         writer.write([3, 7], [0.5, 2.0], 1)
    ...     (rows,) = read(Path(folder, "a.tfrecord"), ReadOptions(), 1 << 20)
    >>> rows.labels, rows.indices, rows.values
    (array([1.]), array([3, 7], dtype=uint32), array([0.5, 2. ], dtype=float32))
    """
    offset, row = 0, 0
    pieces = _pieces(
        path, max(_LEAST, piece_bytes // _BYTES_PER_BYTE // (reader_threads() + 2))
    )  # so many are held at once
    for piece, (rows, used, fault) in map_in_order(partial(_parsed, reading=reading), pieces):
        if fault != parser.FINE or used < len(piece):
            raise _failure(path, fault or parser.CUT, offset + used, row + len(rows))
        if len(rows):
            yield rows
        offset, row = offset + used, row + len(rows)


def _pieces(path: Path, size: int) -> Iterator[bytes]:
    """The file in pieces of whole records; if there is a damaged length, the last piece goes on behind it."""
    held = b""
    for block in _blocks(path, size):
        held = held + block if held else block
        end, believed = parser.whole(np.frombuffer(held, np.uint8))
        if not believed:
            break
        if end:
            yield held[:end]
            held = held[end:]
    if held:
        yield held


TFRECORD = Reader("tfrecord", (".tfrecord", ".tfrecords"), read, compressible=True)


def _parsed(held: bytes, reading: ReadOptions) -> tuple[CSRRows, int, int]:
    """The whole records at the start of some bytes, how many bytes those are, and what is wrong behind them."""
    data = np.frombuffer(held, np.uint8)
    most = len(data) // parser.FRAME + 1
    indptr, labels = np.zeros(most + 1, np.int64), np.empty(most)
    # As large as they may get: an index takes a byte at least. Pages that are not touched cost nothing.
    indices, values = np.empty(len(data), np.uint32), np.empty(len(data), np.float32)
    room: Array = np.empty(len(data), np.int64)
    count, used, fault, _ = parser.parse(
        data, NAMES, reading.unlabelled, LARGEST_INDEX + 1, indptr, indices, values, labels, room
    )
    indptr = indptr[: count + 1]
    merge_duplicates(indptr, indices, values)
    indices, values = indices[: indptr[-1]], values[: indptr[-1]]
    features = int(indices.max()) + 1 if indices.size else 0
    return CSRRows(indptr, indices, values, labels[:count], NO_WEIGHTS, features, "sparse"), int(used), int(fault)


def _failure(path: Path, fault: int, offset: int, row: int) -> DataError:
    what, remedy = _FAULTS[fault]
    return DataError(f"{what} (record {row + 1:,}, which begins at byte {offset:,})", path=path, remedy=remedy)


def _blocks(path: Path, size: int) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            packed = _is_gzip(file.read(12))
            file.seek(0)
            if path.suffix.lower() == ".bz2":
                raise DataError("TFRecord files are plain or gzip-compressed", path=path, remedy="Unpack it first.")
            source: Any = gzip.GzipFile(fileobj=file) if packed else file
            yield from iter(lambda: source.read(size), b"")
    except EOFError:
        raise DataError("the gzip archive is truncated", path=path, remedy=_AGAIN) from None
    except (zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"the gzip archive is damaged ({error})", path=path, remedy=_AGAIN) from None
    except OSError as error:
        raise DataError(f"the file cannot be read ({error.strerror or error})", path=path, remedy="Check it.") from None


def _is_gzip(first: bytes) -> bool:
    """A record of 559,903 bytes begins as gzip does; but then with the right checksum of its length."""
    if not first.startswith(b"\x1f\x8b"):
        return False
    return len(first) < 12 or int(masked_crc(np.frombuffer(first, np.uint8), 0, 8)) != int.from_bytes(
        first[8:], "little"
    )
