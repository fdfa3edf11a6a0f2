"""What is wrong with a line of svmlight text, in words."""

from __future__ import annotations

import re
from pathlib import Path

from hogwild.data.readers import svmlight_parser as parser
from hogwild.data.readers.text import NEWLINE, Segment, excerpt, place
from hogwild.data.reading import LARGEST_INDEX, Reading
from hogwild.errors import DataError

_FORM = "A line is: label index:value index:value ... (# comment)."
_INDICES = "Indices are whole numbers that count from 0 or from 1."
_SORT = "Sort each row by index, and give each index once."
_FINITE = "Replace or leave out missing and infinite values."

# For each thing the parser stops at: what is wrong with the field there, and what to do.
_WORDS = {
    parser.BAD_LABEL: ("the label {field} is not a number", _FORM),
    parser.NO_LABEL: ("the label is missing: the line starts with {field}", _FORM),
    parser.MANY_LABELS: ("the row has several labels ({field}), which is not supported", "Keep one label per row."),
    parser.INFINITE_LABEL: ("the label {field} is not finite", _FINITE),
    parser.BAD_INDEX: ("{field} is not index:value", _FORM),
    parser.NEGATIVE_INDEX: ("the index in {field} is negative", _INDICES),
    parser.SMALL_INDEX: ("index 0 in {field}, but indices were said to count from 1", "Read it with base 0."),
    parser.HUGE_INDEX: (f"the index in {{field}} is larger than {LARGEST_INDEX:,}", "Hash or renumber the features."),
    parser.EXTRA_INDEX: (
        "the index in {field} is beyond the {features:,} features expected",
        "Allow for more features, or read it with extra='ignore' to leave such columns out.",
    ),
    parser.REPEATED_INDEX: ("the index in {field} is in the row already", _SORT),
    parser.UNSORTED_INDEX: ("the index in {field} is smaller than the one before it", _SORT),
    parser.NO_COLON: ("{field} has no colon", _FORM),
    parser.NO_VALUE: ("there is no value behind the colon", _FORM),
    parser.BAD_VALUE: ("the value {field} is not a number", _FORM),
    parser.INFINITE_VALUE: ("the value {field} is not finite as a 32-bit number", _FINITE),
    parser.BAD_QUERY: ("{field} is not qid:n straight behind the label, with a whole number n", _FORM),
    parser.STRAY_RETURN: ("a carriage return without a newline", "Convert the line ends to \\n or \\r\\n."),
    parser.NUL_BYTE: ("a NUL byte: this is not plain text", "Save it as plain text, or name its format."),
}
_NOT_FINITE = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)


def failure(path: Path, segment: Segment, reading: Reading, offset: int, problem: int) -> DataError:
    r"""The error that tells what the parser stopped at.

    >>> import numpy as np
    >>> segment = Segment(np.frombuffer(b"1 2:3\n1 -2:3\n", np.uint8), 1)
    >>> print(failure(Path("a.svm"), segment, Reading(), 8, parser.NEGATIVE_INDEX))
    a.svm, line 2, column 3: the index in '-2:3' is negative. Indices are whole numbers that count from 0 or from 1.
    """
    stop = _field_end(segment, offset)
    field = segment.bytes[offset:stop].tobytes()
    if b"\0" in field:
        problem = parser.NUL_BYTE
    elif _NOT_FINITE.fullmatch(field):
        problem = {parser.BAD_LABEL: parser.INFINITE_LABEL, parser.BAD_VALUE: parser.INFINITE_VALUE}.get(
            problem, problem
        )
    what, remedy = _WORDS[problem]
    line, column = place(segment, offset)
    words = what.format(field=excerpt(segment, offset, stop), features=reading.features or 0)
    return DataError(words, path=path, line=line, column=column, remedy=remedy)


def _field_end(segment: Segment, offset: int) -> int:
    stop = offset
    while segment.bytes[stop] not in b" \t\r#\n" and segment.bytes[stop] != NEWLINE:
        stop += 1
    return stop
