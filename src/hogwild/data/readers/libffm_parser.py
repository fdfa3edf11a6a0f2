"""Compiled parser of the libffm reader, from bytes to arrays. See :mod:`hogwild.data.readers.svmlight_parser`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hogwild.data.field_vocabulary import MISSING, column_of, key
from hogwild.data.reader import LARGEST_INDEX
from hogwild.data.readers.parse_float import BAD, CLOSE, EXACT, LONG, SLACK, number
from hogwild.data.readers.parse_int import byte, digits
from hogwild.data.readers.svmlight_parser import blanks, ends, label_at
from hogwild.jit import compiled

# Reason why the parser stopped: none, or the part of an entry that is invalid.
NOTHING, LABEL, FIELD, FEATURE, VALUE, UNKNOWN = range(6)

_ONE: Final = np.uint64(1)
_LONGEST: Final = np.uint64(18)  # Largest number of digits, which 64 bits hold without overflow.
_NEWLINE, _COLON = 10, 58
_key = compiled(key)


@compiled
def parse(
    start: Any, stop: Any, unlabelled: Any, drop: Any, grows: Any, keys: Any, places: Any, size: Any,
    indptr: Any, labels: Any, indices: Any, values: Any, odd: Any,
) -> tuple[Any, Any, Any, int, int, Any]:  # fmt: skip
    """Parse the lines from address ``start`` to ``stop``: ``label field:feature:value ...``.

    The parser looks columns up in a table of fields, and adds new pairs to it. Numbers that float64 arithmetic does not
    determine go to ``odd`` as (start, end, slot). The slot of a label is ``-1 - row``.

    The function returns the numbers of rows, of entries, of keys in the table and of odd numbers. It also returns the
    reason and the position of the stop.
    """
    row, entry, odds, at = 0, 0, 0, start
    while at < stop:
        at = blanks(at)
        if byte(at) == _NEWLINE:
            at += _ONE
            continue
        value, end, known = label_at(at, stop, unlabelled)
        if known == BAD:
            return row, entry, size, odds, LABEL, at
        labels[row] = value
        if known != EXACT:
            odd[odds, 0], odd[odds, 1], odd[odds, 2] = at, end, -1 - row
            odds += 1
        at = end
        while True:
            at = blanks(at)
            if byte(at) == _NEWLINE:
                break
            field, colon = digits(at, stop, np.uint64(0))
            if byte(colon) != _COLON or colon == at or colon - at > _LONGEST or field > np.uint64(LARGEST_INDEX):
                return row, entry, size, odds, FIELD, at
            first = colon + _ONE
            feature, colon = digits(first, stop, np.uint64(0))
            if byte(colon) != _COLON or colon == first or colon - first > _LONGEST:
                return row, entry, size, odds, FEATURE, at
            if feature > np.uint64(LARGEST_INDEX):
                return row, entry, size, odds, FEATURE, at
            value, end, known = number(colon + _ONE, stop)
            single = np.float32(value)
            if known == BAD or not np.isfinite(single) or not ends(byte(end)):
                return row, entry, size, odds, VALUE, colon + _ONE
            column, size = column_of(_key(field, feature), keys, places, size, grows)
            if column != MISSING:
                if known == CLOSE and np.float32(value * (1 - SLACK)) != np.float32(value * (1 + SLACK)):
                    # The value is so close to a rounding boundary of float32 that its error may change the result.
                    known = LONG
                if known == LONG:
                    odd[odds, 0], odd[odds, 1], odd[odds, 2] = colon + _ONE, end, entry
                    odds += 1
                indices[entry], values[entry] = column, single
                entry += 1
            elif not drop:
                return row, entry, size, odds, UNKNOWN, at
            at = end
        at += _ONE
        row += 1
        indptr[row] = entry
    return row, entry, size, odds, NOTHING, at
