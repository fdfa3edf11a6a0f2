"""Reader of the libffm text format: ``label field:feature:value field:feature:value ... [# comment]``.

Columns are numbered in the order in which a pair (field, feature) first occurs (:mod:`hogwild.data.field_vocabulary`).
Entries of one row with the same feature and field are added up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isinf
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.data.csr import NO_WEIGHTS, Array, CSRRows
from hogwild.data.reader import LARGEST_INDEX, Reader, ReadOptions
from hogwild.data.readers import libffm_parser as parser
from hogwild.data.readers.line_segments import Segment, excerpt, place, segments
from hogwild.data.sum_duplicates import merge_duplicates
from hogwild.errors import DataError

# Bytes of text per segment. The table of pairs must have room for all pairs that a segment may contain.
_SEGMENT_BYTES = 1 << 22
_TO_INFINITY = 3.4028235677973366e38  # Smallest number that is infinite in float32.
_FORM = "A line is: label field:feature:value field:feature:value ... (# comment)."
_FINITE = "Replace or leave out missing and infinite values."
_INFINITE = re.compile(rb"[+-]?(nan|inf|infinity)|[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


def read(path: Path, reading: ReadOptions, piece_bytes: int) -> Iterator[CSRRows]:
    r"""Yield the rows of a file in pieces.

    ``reading.table`` holds the column of each pair (field, feature), and gets new pairs while it grows.

    >>> import tempfile
    >>> from hogwild.data.field_vocabulary import FieldVocabulary
    >>> table = FieldVocabulary()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.ffm").write_text("1 0:7:1 1:30:0.5\n0 1:30:2 # second\n")
    ...     (rows,) = read(Path(folder, "a.ffm"), ReadOptions(table=table), 1 << 20)
    >>> rows.indices, rows.values, table.fields
    (array([0, 1, 1], dtype=uint32), array([1. , 0.5, 2. ], dtype=float32), array([0, 1], dtype=uint32))
    """
    if reading.table is None:
        raise DataError(
            "a libffm file can only be read into memory, with the fields of its features",
            path=path,
            remedy="Train on the file itself, without packing it.",
        )
    empty = True
    for segment in segments(path, min(piece_bytes, _SEGMENT_BYTES)):
        rows = _rows(path, reading, reading.table, segment)
        if len(rows):
            yield rows
            empty = False
    if empty:
        raise DataError(
            "there is no row in the file, only blank lines and comments",
            path=path,
            remedy="Check that it was written or downloaded completely.",
        )


LIBFFM = Reader("libffm", (".ffm", ".libffm"), read, compressible=True, fielded=True)


def _rows(path: Path, reading: ReadOptions, table: Any, segment: Segment) -> CSRRows:
    text, base = segment.bytes, segment.bytes.ctypes.data
    lines, most = int(np.count_nonzero(text == 10)), int(np.count_nonzero(text == 58)) // 2 + 1
    keys, places = table.make_room(most)
    indptr, labels = np.zeros(lines + 1, np.int64), np.empty(lines)
    indices, values = np.empty(most, np.uint32), np.empty(most, np.float32)
    # The array has its largest possible size. Pages that are not touched take no memory.
    odd = np.empty((lines + most, 3), np.int64)
    rows, _, size, odds, problem, at = parser.parse(
        np.uint64(base), np.uint64(base + len(text)), reading.unlabelled, reading.extra == "ignore", table.grows,
        keys, places, len(table), indptr, labels, indices, values, odd,
    )  # fmt: skip
    table.keys = keys[:size]
    failures = [(int(at) - base, problem)] if problem != parser.NOTHING else []
    failures += _settle(segment, labels, values, odd[:odds] - [base, base, 0])
    if failures:
        raise _failure(path, segment, *min(failures))
    indptr = indptr[: rows + 1]
    merge_duplicates(indptr, indices, values)
    return CSRRows(indptr, indices[: indptr[-1]], values[: indptr[-1]], labels[:rows], NO_WEIGHTS, size, "sparse")


def _settle(segment: Segment, labels: Array, values: Array, odd: Array) -> Iterator[tuple[int, int]]:
    """Convert the numbers that the compiled parser cannot convert, and yield those that are too large."""
    for start, stop, slot in odd.tolist():
        number = float(segment.bytes[start:stop].tobytes())
        if slot < 0:
            labels[-1 - slot] = number
            if isinf(number):
                yield start, parser.LABEL
        elif abs(number) < _TO_INFINITY:
            values[slot] = number
        else:
            yield start, parser.VALUE


def _failure(path: Path, segment: Segment, offset: int, problem: int) -> DataError:
    """Return the error for the text at ``offset``."""
    stop = offset
    while segment.bytes[stop] not in b" \t\r\n#":
        stop += 1
    what, remedy = _words(segment.bytes[offset:stop].tobytes(), problem)
    line, column = place(segment, offset)
    shown = what.replace("{field}", excerpt(segment, offset, stop))
    return DataError(shown, path=path, line=line, column=column, remedy=remedy)


def _words(text: bytes, problem: int) -> tuple[str, str]:
    if b"\0" in text:
        return "a NUL byte: this is not plain text", "Save it as plain text, or name its format."
    if problem == parser.LABEL:
        if _INFINITE.fullmatch(text):
            return "the label {field} is not finite", _FINITE
        missing = b":" in text
        return (
            "the label is missing: the line starts with {field}" if missing else "the label {field} is no number"
        ), _FORM
    if problem == parser.VALUE:
        if not text:
            return "there is no value behind the colon", _FORM
        if _INFINITE.fullmatch(text):
            return "the value {field} is not finite as a 32-bit number", _FINITE
        return "the value {field} is not a number", _FORM
    if problem == parser.UNKNOWN:
        return (
            "the feature of {field} was not there in training, in that field",
            "Have features that the model does not know ignored (extra='ignore').",
        )
    if not text:
        return "a carriage return without a newline", "Convert the line ends to \\n or \\r\\n."
    if text.count(b":") != 2:
        return "{field} is not field:feature:value", _FORM
    number = text.split(b":")[0 if problem == parser.FIELD else 1]
    which = "field" if problem == parser.FIELD else "feature"
    if re.fullmatch(rb"\d+", number):
        return f"the {which} in {{field}} is larger than {LARGEST_INDEX:,}", "Number or hash them into fewer."
    return f"the {which} in {{field}} is not a whole number that counts from 0", _FORM
