"""Reader of TFRecord files of ``tf.train.Example``: ``nz_idx`` (whole numbers), ``nz_values`` and ``label``.

Without ``nz_values`` all values are one. The reader verifies both checksums of every record. Compressed files are
recognised by their first bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from hogwild.data.compression import compression_of, gathered, unpacked
from hogwild.data.csr import NO_WEIGHTS, Array, CSRRows
from hogwild.data.hashing import merge_duplicates
from hogwild.data.loader import map_in_order, reader_threads
from hogwild.data.reader import LARGEST_INDEX, Reader, ReadOptions
from hogwild.data.readers import tfrecord_parser as parser
from hogwild.data.readers.tfrecord_parser import masked_crc
from hogwild.data.text_limits import TextLimits
from hogwild.errors import DataError
from hogwild.files import format_size

NAMES = tuple(np.frombuffer(name, np.uint8) for name in (b"nz_idx", b"nz_values", b"label"))
# Bytes of memory per byte of file. An index and its value take about 7 bytes in the file and 8 in memory, and both
# copies are held.
_BYTES_PER_BYTE = 2
_LEAST = 1 << 12  # Smallest number of bytes of a piece of the file.
_AGAIN = "Make or fetch the file again."
_FEATURES = "An Example must have nz_idx (int64), nz_values (float, or none at all if every value is 1) and label."
_FAULTS = {
    parser.LENGTH: (
        "the checksum of the record's length does not match",
        "The file is damaged, or no TFRecord file.",
    ),
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
    >>> from hogwild.data.tfrecord_writer import RecordWriter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with RecordWriter(Path(folder, "a.tfrecord")) as writer:
    ...         writer.write([3, 7], [0.5, 2.0], 1)
    ...     (rows,) = read(Path(folder, "a.tfrecord"), ReadOptions(), 1 << 20)
    >>> rows.labels, rows.indices, rows.values
    (array([1.]), array([3, 7], dtype=uint32), array([0.5, 2. ], dtype=float32))
    """
    offset, row = 0, 0
    # The reader holds ``reader_threads() + 2`` pieces at the same time.
    pieces = _pieces(path, max(_LEAST, piece_bytes // _BYTES_PER_BYTE // (reader_threads() + 2)), reading.limits)
    for piece, (rows, used, fault) in map_in_order(partial(_parsed, reading=reading), pieces):
        if fault != parser.FINE or used < len(piece):
            raise _failure(path, fault or parser.CUT, offset + used, row + len(rows))
        if len(rows):
            yield rows
        offset, row = offset + used, row + len(rows)


def _pieces(path: Path, size: int, limits: TextLimits) -> Iterator[bytes]:
    """Yield the file in pieces of whole records; the last piece contains the bytes after a damaged length."""
    held = b""
    for block in _blocks(path, size, limits):
        held = held + block if held else block
        end, lengths_match = parser.whole(np.frombuffer(held, np.uint8))
        if not lengths_match:
            break
        if end:
            yield held[:end]
            held = held[end:]
        elif len(held) > limits.longest_line:
            what = f"a record is longer than {format_size(limits.longest_line)}"
            raise DataError(what, path=path, remedy="Allow longer ones (--longest-line 1GiB, HOGWILD_LONGEST_LINE).")
    if held:
        yield held


TFRECORD = Reader("tfrecord", (".tfrecord", ".tfrecords"), read, compressible=True, streams=True)


def _parsed(held: bytes, reading: ReadOptions) -> tuple[CSRRows, int, int]:
    """Return the rows of the complete records at the start of ``held``, their size in bytes, and the next fault."""
    data = np.frombuffer(held, np.uint8)
    most = len(data) // parser.FRAME + 1
    indptr, labels = np.zeros(most + 1, np.int64), np.empty(most)
    # The arrays have their largest possible size, since an index takes at least one byte. Pages that are not touched
    # take no memory.
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


def _blocks(path: Path, size: int, limits: TextLimits) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            first = file.peek(12)[:12]
            compression = None if _is_record(first) else compression_of(first)
            if compression is None:
                yield from iter(lambda: file.read(size), b"")
            else:
                yield from gathered(unpacked(path, file, compression, limits), size)
    except OSError as error:
        raise DataError(f"the file cannot be read ({error.strerror or error})", path=path, remedy="Check it.") from None


def _is_record(first: bytes) -> bool:
    """Return whether a file begins with a record, because the checksum of its length matches.

    A record of 559,903 bytes begins with the same bytes as gzip.
    """
    return len(first) == 12 and int(masked_crc(np.frombuffer(first, np.uint8), 0, 8)) == int.from_bytes(
        first[8:], "little"
    )
