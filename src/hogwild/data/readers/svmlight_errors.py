"""Error messages for lines of svmlight text."""

from __future__ import annotations

import re
from pathlib import Path

from hogwild.data.reader import LARGEST_INDEX, ReadOptions
from hogwild.data.readers.line_segments import NEWLINE, Segment, excerpt, place
from hogwild.data.readers.svmlight_parser import INDEX, LABEL
from hogwild.errors import DataError

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
    start, stop = _line_start(segment, offset), _field_end(segment, offset)
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
        said = "is in the row already" if repeated else "is smaller than the one before it"
        return f"the index in {{field}} {said}", _SORT
    if reading.base == 1 and int(digits) == 0:
        return (
            "index 0 in {field}, but the indices are taken to count from 1",
            "Say that they count from 0: base=0, --base 0.",
        )
    return f"the index in {{field}} is beyond the {reading.features or 0:,} features expected", _MORE


def _line_start(segment: Segment, offset: int) -> int:
    while offset > 0 and segment.bytes[offset - 1] != NEWLINE:
        offset -= 1
    return offset


def _field_end(segment: Segment, offset: int) -> int:
    while segment.bytes[offset] not in b" \t\r\n#":
        offset += 1
    return offset
