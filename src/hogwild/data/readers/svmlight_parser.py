"""Compiled parser of svmlight lines, and the error messages for lines that it refuses.

The text is a run of whole lines in memory, each of which ends with a newline. No loop runs past a newline, so no loop
needs to check for the end of the text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.memory_words import byte
from hogwild.data.reader import LARGEST_INDEX, ReadOptions
from hogwild.data.readers.line_segments import LONGEST_FIELD_BYTES, Segment, excerpt, field_end, line_start, place
from hogwild.data.readers.parse_number import BAD, CLOSE, EXACT, LONG, SLACK, digits, number
from hogwild.errors import DataError
from hogwild.jit import compiled, compiled_part

# Reason why the parser stopped: none, or the field that is invalid. :func:`failure` makes the messages.
NOTHING, LABEL, INDEX, VALUE = range(4)

_ONE: Final = np.uint64(1)
_NEWLINE, _RETURN, _SPACE, _TAB, _HASH, _COLON, _Q = 10, 13, 32, 9, 35, 58, 113
_ENDS: Final = sum(1 << byte for byte in (_SPACE, _NEWLINE, _TAB, _RETURN, _HASH))


@compiled
def count(text: Array, start: int, stop: int) -> tuple[int, int]:
    """Count (lines, colons) of a stretch of text, which are upper bounds of its rows and entries for :func:`parse`."""
    lines = colons = 0
    for character in text[start:stop]:
        lines += character == _NEWLINE
        colons += character == _COLON
    return lines, colons


@compiled_part
def ends(first: int) -> bool:
    """Return whether this byte ends a field."""
    return first <= _HASH and (_ENDS >> first) & 1 == 1


@compiled_part
def blanks(at: np.uint64) -> np.uint64:
    """Return the end of the blanks at ``at``, and of a comment after them."""
    while byte(at) == _SPACE or byte(at) == _TAB:
        at += _ONE
    if byte(at) == _HASH:
        while byte(at) != _NEWLINE and byte(at) != 0:
            at += _ONE
    if byte(at) == _RETURN and byte(at + _ONE) == _NEWLINE:
        at += _ONE
    return at


@compiled_part
def label_at(at: np.uint64, stop: np.uint64, unlabelled: bool) -> tuple[Any, Any, Any]:
    """Parse the label of the line that starts at ``at``, and return (label, end, accuracy)."""
    value, end, known = number(at, stop)
    if unlabelled and (byte(at) == _Q or byte(end) == _COLON):
        return 0.0, at, EXACT
    return value, end, known if ends(byte(end)) else BAD


@compiled
def parse(
    start: np.uint64, stop: np.uint64, unlabelled: bool, smallest: Any, limit: int, drop: bool, row: np.uint64,
    entry: np.uint64, indptr: Array, labels: Array, indices: Array, values: Array, inexact: Array,
) -> tuple[Any, Any, int, Any, int, Any]:  # fmt: skip
    """Parse the lines from address ``start`` to ``stop`` into the arrays, from slots ``row`` and ``entry`` on.

    Indices from ``limit`` on are dropped or refused. A number that float64 arithmetic does not determine goes to
    ``inexact`` as (start, end, slot), for the caller to convert. The slot of a label is ``-1 - row``. The function
    returns the next free slots, the number of inexact numbers, one more than the largest index, and the reason and
    position of the stop.
    """
    n_inexact, largest, at = 0, np.int64(-1), start
    while at < stop:
        at = blanks(at)
        if byte(at) == _NEWLINE:
            at += _ONE
            continue
        value, end, known = label_at(at, stop, unlabelled)
        if known == BAD:
            return row, entry, n_inexact, largest + 1, LABEL, at
        labels[row] = value
        if known != EXACT:
            inexact[n_inexact, 0], inexact[n_inexact, 1], inexact[n_inexact, 2] = at, end, -1 - np.int64(row)
            n_inexact += 1
        at, previous, query = end, smallest - 1, True
        while True:
            at = blanks(at)
            if byte(at) == _NEWLINE:
                break
            # The bytes are "q", "i" and "d".
            if query and byte(at) == _Q and byte(at + _ONE) == 105 and byte(at + np.uint64(2)) == 100:
                colon = at + np.uint64(3)
                _, end = digits(colon + _ONE, stop, np.uint64(0))
                if byte(colon) != _COLON or end == colon + _ONE or not ends(byte(end)):
                    return row, entry, n_inexact, largest + 1, INDEX, at
                at, query = end, False
                continue
            whole, colon = digits(at, stop, np.uint64(0))
            index, length = np.int64(whole), colon - at
            if byte(colon) != _COLON or length == 0 or length > np.uint64(18) or index > LARGEST_INDEX:
                return row, entry, n_inexact, largest + 1, INDEX, at
            if index <= previous or (index >= limit and not drop):
                return row, entry, n_inexact, largest + 1, INDEX, at
            previous, query, at = index, False, colon + _ONE
            value, end, known = number(at, stop)
            single = np.float32(value)
            if known == BAD or not np.isfinite(single) or not ends(byte(end)):
                return row, entry, n_inexact, largest + 1, VALUE, at
            if index < limit:
                if known == CLOSE and np.float32(value * (1 - SLACK)) != np.float32(value * (1 + SLACK)):
                    # The value is so close to a rounding boundary of float32 that its error may change the result.
                    known = LONG
                if known == LONG:
                    inexact[n_inexact, 0], inexact[n_inexact, 1], inexact[n_inexact, 2] = at, end, entry
                    n_inexact += 1
                indices[entry], values[entry] = index, single
                entry += _ONE
                if index > largest:
                    largest = index
            at = end
        at += _ONE
        row += _ONE
        indptr[row] = entry
    return row, entry, n_inexact, largest + 1, NOTHING, at


_FORM = "A line is: label index:value index:value ... (# comment)."
_INDICES = "Indices are whole numbers that count from 0 or from 1."
_SORT = "Sort each row by index, and give each index once."
_FINITE = "Replace or leave out missing and infinite values."
_TEXT = "Save it as plain text, or name its format."
_RETURNS = "Convert the line ends to \\n or \\r\\n."
_MORE = "Allow for more features (features=, --features)."

_NUMBER = rb"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?"
# A decimal number is refused only if it overflows, so the pattern includes decimal numbers.
_INFINITE = re.compile(rb"[+-]?(nan|inf|infinity)|" + _NUMBER, re.IGNORECASE)
_BEFORE = re.compile(rb"(\d+):[^\s:]*\s*$")


def failure(path: Path, segment: Segment, reading: ReadOptions, offset: int, problem: int) -> DataError:
    r"""Return the error for the field at ``offset``, which is invalid as a label, an index or a value.

    >>> import numpy as np
    >>> segment = Segment(np.frombuffer(b"1 2:3\n1 -2:3\n", np.uint8), 1)
    >>> print(failure(Path("a.svm"), segment, ReadOptions(), 8, INDEX))
    a.svm, line 2, column 3: the index in '-2:3' is negative. Indices are whole numbers that count from 0 or from 1.
    """
    start, stop = max(line_start(segment, offset), offset - LONGEST_FIELD_BYTES), field_end(segment, offset)
    field, before = segment.bytes[offset:stop].tobytes(), segment.bytes[start:offset].tobytes()
    if b"\0" in field:
        what, remedy = "a NUL byte: this is not plain text", _TEXT
    elif problem == LABEL:
        what, remedy = _label(field)
    elif problem == INDEX:
        what, remedy = _index(field, before, reading)
    else:
        what, remedy = _value(field)
    line, column = place(segment, offset)
    shown = what.replace("{field}", excerpt(segment, offset, stop))
    return DataError(shown, path=path, line=line, column=column, remedy=remedy)


def _label(field: bytes) -> tuple[str, str]:
    if _INFINITE.fullmatch(field):
        return "the label {field} is not finite", _FINITE
    if b"," in field:
        return "the row has several labels ({field}), which is not supported", "Keep one label per row."
    if b":" in field:
        return "the label is missing: the line starts with {field}", _FORM
    return "the label {field} is not a number", _FORM


def _value(field: bytes) -> tuple[str, str]:
    if not field:
        return "there is no value behind the colon", _FORM
    if _INFINITE.fullmatch(field):
        return "the value {field} is not finite as a 32-bit number", _FINITE
    return "the value {field} is not a number", _FORM


def _index(field: bytes, before: bytes, reading: ReadOptions) -> tuple[str, str]:
    digits, colon, _ = field.partition(b":")
    if not field:
        return "a carriage return without a newline", _RETURNS
    if field.startswith(b"q"):
        return "{field} is not qid:n straight behind the label, with a whole number n", _FORM
    if re.fullmatch(rb"-\d+", digits):
        return "the index in {field} is negative", _INDICES
    if not re.fullmatch(rb"\d+", digits):
        return "{field} is not index:value", _FORM
    if not colon:
        return "{field} has no colon", _FORM
    if len(digits) > 18 or int(digits) > LARGEST_INDEX:
        return f"the index in {{field}} is larger than {LARGEST_INDEX:,}", "Hash or renumber the features."
    if (previous := _BEFORE.search(before)) and int(digits) <= int(previous[1]):
        repeated = int(digits) == int(previous[1])
        reason = "is in the row already" if repeated else "is smaller than the one before it"
        return f"the index in {{field}} {reason}", _SORT
    if reading.base == 1 and int(digits) == 0:
        return (
            "index 0 in {field}, but the indices are taken to count from 1",
            "Say that they count from 0: base=0, --base 0.",
        )
    return f"the index in {{field}} is beyond the {reading.features or 0:,} features expected", _MORE
