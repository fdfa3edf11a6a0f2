"""Reader of LIBFFM files: ``label field:feature:value ...`` in each line.

Columns are numbered in the order in which a pair (field, feature) first occurs (:mod:`hogwild.data.field_vocabulary`).
Entries of one row with the same feature and field are added up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isinf
from pathlib import Path
from typing import Any, Final

import numpy as np

from hogwild.data.csr import NO_WEIGHTS, Array, CSRRows
from hogwild.data.field_vocabulary import MISSING, FieldVocabulary, column_of, key
from hogwild.data.hashing import merge_duplicates
from hogwild.data.memory_words import byte
from hogwild.data.reader import LARGEST_INDEX, Reader, ReadOptions
from hogwild.data.readers.line_segments import Segment, excerpt, field_end, place, segments
from hogwild.data.readers.long_number import to_float
from hogwild.data.readers.parse_number import BAD, CLOSE, EXACT, LONG, SLACK, digits, number
from hogwild.data.readers.svmlight_parser import blanks, ends, label_at
from hogwild.errors import DataError
from hogwild.jit import compiled

# Reason why the parser stopped: none, or the part of an entry that is invalid.
NOTHING, LABEL, FIELD, FEATURE, VALUE, UNKNOWN = range(6)

_ONE: Final = np.uint64(1)
_LONGEST: Final = np.uint64(18)  # Largest number of digits, which 64 bits hold without overflow.
_NEWLINE, _COLON = 10, 58
_key = compiled(key)


@compiled
def parse(
    start: np.uint64, stop: np.uint64, unlabelled: bool, drop: bool, grows: bool, keys: Array, places: Array, size: int,
    indptr: Array, labels: Array, indices: Array, values: Array, inexact: Array,
) -> tuple[Any, Any, Any, int, int, Any]:  # fmt: skip
    """Parse the lines from address ``start`` to ``stop``: ``label field:feature:value ...``.

    The parser looks columns up in a table of fields, and adds new pairs to it. Numbers that float64 arithmetic does not
    determine go to ``inexact`` as (start, end, slot). The slot of a label is ``-1 - row``.

    The function returns the numbers of rows, of entries, of keys in the table and of inexact numbers. It also returns
    the reason and the position of the stop.
    """
    row, entry, n_inexact, at = 0, 0, 0, start
    while at < stop:
        at = blanks(at)
        if byte(at) == _NEWLINE:
            at += _ONE
            continue
        value, end, known = label_at(at, stop, unlabelled)
        if known == BAD:
            return row, entry, size, n_inexact, LABEL, at
        labels[row] = value
        if known != EXACT:
            inexact[n_inexact, 0], inexact[n_inexact, 1], inexact[n_inexact, 2] = at, end, -1 - row
            n_inexact += 1
        at = end
        while True:
            at = blanks(at)
            if byte(at) == _NEWLINE:
                break
            field, colon = digits(at, stop, np.uint64(0))
            if byte(colon) != _COLON or colon == at or colon - at > _LONGEST or field > np.uint64(LARGEST_INDEX):
                return row, entry, size, n_inexact, FIELD, at
            first = colon + _ONE
            feature, colon = digits(first, stop, np.uint64(0))
            if byte(colon) != _COLON or colon == first or colon - first > _LONGEST:
                return row, entry, size, n_inexact, FEATURE, at
            if feature > np.uint64(LARGEST_INDEX):
                return row, entry, size, n_inexact, FEATURE, at
            value, end, known = number(colon + _ONE, stop)
            single = np.float32(value)
            if known == BAD or not np.isfinite(single) or not ends(byte(end)):
                return row, entry, size, n_inexact, VALUE, colon + _ONE
            column, size = column_of(_key(field, feature), keys, places, size, grows)
            if column != MISSING:
                if known == CLOSE and np.float32(value * (1 - SLACK)) != np.float32(value * (1 + SLACK)):
                    # The value is so close to a rounding boundary of float32 that its error may change the result.
                    known = LONG
                if known == LONG:
                    inexact[n_inexact, 0], inexact[n_inexact, 1], inexact[n_inexact, 2] = colon + _ONE, end, entry
                    n_inexact += 1
                indices[entry], values[entry] = column, single
                entry += 1
            elif not drop:
                return row, entry, size, n_inexact, UNKNOWN, at
            at = end
        at += _ONE
        row += 1
        indptr[row] = entry
    return row, entry, size, n_inexact, NOTHING, at


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
    for segment in segments(path, min(piece_bytes, _SEGMENT_BYTES), limits=reading.limits):
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


LIBFFM = Reader("libffm", (".ffm", ".libffm"), read, compressible=True, streams=True, fielded=True)


def _rows(path: Path, reading: ReadOptions, table: FieldVocabulary, segment: Segment) -> CSRRows:
    text, base = segment.bytes, segment.bytes.ctypes.data
    lines, most = int(np.count_nonzero(text == 10)), int(np.count_nonzero(text == 58)) // 2 + 1
    keys, places = table.make_room(most)
    indptr, labels = np.zeros(lines + 1, np.int64), np.empty(lines)
    indices, values = np.empty(most, np.uint32), np.empty(most, np.float32)
    # The array has its largest possible size. Pages that are not touched take no memory.
    inexact = np.empty((lines + most, 3), np.int64)
    rows, _, size, n_inexact, problem, at = parse(
        np.uint64(base), np.uint64(base + len(text)), reading.unlabelled, reading.extra == "ignore", table.grows,
        keys, places, len(table), indptr, labels, indices, values, inexact,
    )  # fmt: skip
    table.keys = keys[:size]
    failures = [(int(at) - base, problem)] if problem != NOTHING else []
    failures += _convert_inexact(segment, labels, values, inexact[:n_inexact] - [base, base, 0])
    if failures:
        raise _failure(path, segment, *min(failures))
    indptr = indptr[: rows + 1]
    merge_duplicates(indptr, indices, values)
    return CSRRows(indptr, indices[: indptr[-1]], values[: indptr[-1]], labels[:rows], NO_WEIGHTS, size, "sparse")


def _convert_inexact(segment: Segment, labels: Array, values: Array, inexact: Array) -> Iterator[tuple[int, int]]:
    """Convert the numbers that the compiled parser cannot convert, and yield those that are too large."""
    for start, stop, slot in inexact.tolist():
        number = to_float(segment.bytes[start:stop].tobytes())
        if slot < 0:
            labels[-1 - slot] = number
            if isinf(number):
                yield start, LABEL
        elif abs(number) < _TO_INFINITY:
            values[slot] = number
        else:
            yield start, VALUE


def _failure(path: Path, segment: Segment, offset: int, problem: int) -> DataError:
    """Return the error for the text at ``offset``."""
    stop = field_end(segment, offset)
    what, remedy = _words(segment.bytes[offset:stop].tobytes(), problem)
    line, column = place(segment, offset)
    shown = what.replace("{field}", excerpt(segment, offset, stop))
    return DataError(shown, path=path, line=line, column=column, remedy=remedy)


def _words(text: bytes, problem: int) -> tuple[str, str]:
    if b"\0" in text:
        return "a NUL byte: this is not plain text", "Save it as plain text, or name its format."
    if problem == LABEL:
        if _INFINITE.fullmatch(text):
            return "the label {field} is not finite", _FINITE
        missing = b":" in text
        return (
            "the label is missing: the line starts with {field}" if missing else "the label {field} is no number"
        ), _FORM
    if problem == VALUE:
        if not text:
            return "there is no value behind the colon", _FORM
        if _INFINITE.fullmatch(text):
            return "the value {field} is not finite as a 32-bit number", _FINITE
        return "the value {field} is not a number", _FORM
    if problem == UNKNOWN:
        return (
            "the feature of {field} was not there in training, in that field",
            "Have features that the model does not know ignored (extra='ignore').",
        )
    if not text:
        return "a carriage return without a newline", "Convert the line ends to \\n or \\r\\n."
    if text.count(b":") != 2:
        return "{field} is not field:feature:value", _FORM
    number = text.split(b":")[0 if problem == FIELD else 1]
    which = "field" if problem == FIELD else "feature"
    if re.fullmatch(rb"\d+", number):
        return f"the {which} in {{field}} is larger than {LARGEST_INDEX:,}", "Number or hash them into fewer."
    return f"the {which} in {{field}} is not a whole number that counts from 0", _FORM
