"""Compiled parser of the svmlight reader, from bytes to arrays.

The text is a run of whole lines in memory, each of which ends with a newline. No loop runs past a newline, so no loop
needs to check for the end of the text.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hogwild.data.reader import LARGEST_INDEX
from hogwild.data.readers.parse_float import BAD, CLOSE, EXACT, LONG, SLACK, number
from hogwild.data.readers.parse_int import byte, digits
from hogwild.jit import compiled, compiled_part

# Reason why the parser stopped: none, or the field that is invalid. ``svmlight_errors`` makes the messages.
NOTHING, LABEL, INDEX, VALUE = range(4)

_ONE: Final = np.uint64(1)
_NEWLINE, _RETURN, _SPACE, _TAB, _HASH, _COLON, _Q = 10, 13, 32, 9, 35, 58, 113
_ENDS: Final = sum(1 << byte for byte in (_SPACE, _NEWLINE, _TAB, _RETURN, _HASH))


@compiled
def count(text: Any, start: Any, stop: Any) -> tuple[int, int]:
    """Count (lines, colons) of a stretch of text, which are upper bounds of its rows and entries for :func:`parse`."""
    lines = colons = 0
    for character in text[start:stop]:
        lines += character == _NEWLINE
        colons += character == _COLON
    return lines, colons


@compiled_part
def ends(first: Any) -> Any:
    """Return whether this byte ends a field."""
    return first <= _HASH and (_ENDS >> first) & 1 == 1


@compiled_part
def blanks(at: Any) -> Any:
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
def label_at(at: Any, stop: Any, unlabelled: Any) -> tuple[Any, Any, Any]:
    """Parse the label of the line that starts at ``at``, and return (label, end, accuracy)."""
    value, end, known = number(at, stop)
    if unlabelled and (byte(at) == _Q or byte(end) == _COLON):
        return 0.0, at, EXACT
    return value, end, known if ends(byte(end)) else BAD


@compiled
def parse(
    start: Any, stop: Any, unlabelled: Any, smallest: Any, limit: Any, drop: Any, row: Any, entry: Any,
    indptr: Any, labels: Any, indices: Any, values: Any, odd: Any,
) -> tuple[Any, Any, int, Any, int, Any]:  # fmt: skip
    """Parse the lines from address ``start`` to ``stop`` into the arrays, from slots ``row`` and ``entry`` on.

    Indices from ``limit`` on are dropped or refused. A number that float64 arithmetic does not determine goes to
    ``odd`` as (start, end, slot), for the caller to convert. The slot of a label is ``-1 - row``. The function returns
    the next free slots, the number of odd numbers, one more than the largest index, and the reason and position of the
    stop.
    """
    odds, largest, at = 0, np.int64(-1), start
    while at < stop:
        at = blanks(at)
        if byte(at) == _NEWLINE:
            at += _ONE
            continue
        value, end, known = label_at(at, stop, unlabelled)
        if known == BAD:
            return row, entry, odds, largest + 1, LABEL, at
        labels[row] = value
        if known != EXACT:
            odd[odds, 0], odd[odds, 1], odd[odds, 2] = at, end, -1 - np.int64(row)
            odds += 1
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
                    return row, entry, odds, largest + 1, INDEX, at
                at, query = end, False
                continue
            whole, colon = digits(at, stop, np.uint64(0))
            index, length = np.int64(whole), colon - at
            if byte(colon) != _COLON or length == 0 or length > np.uint64(18) or index > LARGEST_INDEX:
                return row, entry, odds, largest + 1, INDEX, at
            if index <= previous or (index >= limit and not drop):
                return row, entry, odds, largest + 1, INDEX, at
            previous, query, at = index, False, colon + _ONE
            value, end, known = number(at, stop)
            single = np.float32(value)
            if known == BAD or not np.isfinite(single) or not ends(byte(end)):
                return row, entry, odds, largest + 1, VALUE, at
            if index < limit:
                if known == CLOSE and np.float32(value * (1 - SLACK)) != np.float32(value * (1 + SLACK)):
                    # The value is so close to a rounding boundary of float32 that its error may change the result.
                    known = LONG
                if known == LONG:
                    odd[odds, 0], odd[odds, 1], odd[odds, 2] = at, end, entry
                    odds += 1
                indices[entry], values[entry] = index, single
                entry += _ONE
                if index > largest:
                    largest = index
            at = end
        at += _ONE
        row += _ONE
        indptr[row] = entry
    return row, entry, odds, largest + 1, NOTHING, at
