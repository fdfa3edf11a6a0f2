"""The compiled part of the svmlight reader: bytes in, arrays out.

The text is a run of whole lines, each ending with a newline. No loop runs past a newline, so none needs to ask
where the text ends.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hogwild.compiled import compiled
from hogwild.data.readers.digits import digits
from hogwild.data.reading import LARGEST_INDEX

# What stopped the parser.
(
    NOTHING,
    BAD_LABEL,
    NO_LABEL,
    MANY_LABELS,
    INFINITE_LABEL,
    BAD_INDEX,
    NEGATIVE_INDEX,
    SMALL_INDEX,
    HUGE_INDEX,
    EXTRA_INDEX,
    REPEATED_INDEX,
    UNSORTED_INDEX,
    NO_COLON,
    NO_VALUE,
    BAD_VALUE,
    INFINITE_VALUE,
    BAD_QUERY,
    STRAY_RETURN,
    NUL_BYTE,
) = range(19)

# How well a number is known: its float64 exactly; to a few units in the last place; its extent only; not a number.
_EXACT, _CLOSE, _LONG, _BAD = range(4)

_NO_FIELD, _NO_INDEX = -2, -1  # what comes before the first field of a row, and before its first index
_ONE: Final = np.uint64(1)
_POWERS: Final = np.array([float(f"1e{power}") for power in range(65)])
_NEWLINE, _RETURN, _SPACE, _TAB, _HASH, _COLON, _COMMA = 10, 13, 32, 9, 35, 58, 44
_PLUS, _MINUS, _POINT, _ZERO, _NINE, _Q = 43, 45, 46, 48, 57, 113
_ENDS: Final = sum(1 << byte for byte in (_SPACE, _NEWLINE, _TAB, _RETURN, _HASH))


@compiled
def count(text, start, stop):  # type: ignore[no-untyped-def]
    """(lines, colons) of a stretch of text: room enough for what :func:`parse` finds there."""
    lines = colons = 0
    for byte in text[start:stop]:
        lines += byte == _NEWLINE
        colons += byte == _COLON
    return lines, colons


@compiled
def _significant(text, i, count):  # type: ignore[no-untyped-def]
    """How many of a number's digits are behind its leading zeros."""
    while text[i] == _ZERO or text[i] == _POINT:
        count -= text[i] == _ZERO
        i += _ONE
    return count


@compiled
def _number(text, i):  # type: ignore[no-untyped-def]
    """(value, end, how well it is known) of the decimal number at ``i``."""
    byte = text[i]
    negative = byte == _MINUS
    if negative or byte == _PLUS:
        i += _ONE
    mantissa, start = np.uint64(0), i
    while _ZERO <= text[i] <= _NINE:  # mostly one digit
        mantissa = np.uint64(10) * mantissa + np.uint64(text[i] - _ZERO)
        i += _ONE
    count, exponent = np.int64(i - start), np.int64(0)
    if text[i] == _POINT:
        point = i
        mantissa, i = digits(text, i + _ONE, mantissa)
        exponent = np.int64(point) + 1 - np.int64(i)
        count -= exponent
    if count == 0:
        return 0.0, i, _BAD
    if count > 18:
        count = _significant(text, start, count)
    if text[i] == 101 or text[i] == 69:  # e, E
        i += _ONE
        shrinks = text[i] == _MINUS
        if shrinks or text[i] == _PLUS:
            i += _ONE
        start, power = i, 0
        while _ZERO <= text[i] <= _NINE:
            power = min(10 * power + (text[i] - _ZERO), 1 << 40)
            i += _ONE
        if i == start:
            return 0.0, i, _BAD
        exponent += -power if shrinks else power
    if count > 18 or abs(exponent) > 64:
        return 0.0, i, _LONG
    whole = np.int64(mantissa)
    value = whole / _POWERS[np.uint64(-exponent)] if exponent < 0 else whole * _POWERS[np.uint64(exponent)]
    known = _EXACT if whole <= 1 << 53 and abs(exponent) <= 22 else _CLOSE  # one rounding, or up to four
    return -value if negative else value, i, known


@compiled
def _single(value, known):  # type: ignore[no-untyped-def]
    """The float32 of a number, and whether it is known: near a rounding boundary a close value may not settle it."""
    if known == _CLOSE and np.float32(value * (1 - 2.0**-50)) != np.float32(value * (1 + 2.0**-50)):
        return np.float32(0), _LONG
    return np.float32(value), known


@compiled
def _ends(byte):  # type: ignore[no-untyped-def]
    """Whether this byte ends a field."""
    return byte <= _HASH and (_ENDS >> byte) & 1 == 1


@compiled
def _blanks(text, i):  # type: ignore[no-untyped-def]
    """Where the blanks, and a comment behind them, end."""
    while text[i] == _SPACE or text[i] == _TAB:
        i += _ONE
    if text[i] == _HASH:
        while text[i] != _NEWLINE and text[i] != 0:
            i += _ONE
    if text[i] == _RETURN and text[i + _ONE] == _NEWLINE:
        i += _ONE
    return i


@compiled
def _query(text, i):  # type: ignore[no-untyped-def]
    """Where ``qid:n`` ends, or ``i`` if it is something else."""
    if text[i + _ONE] != 105 or text[i + np.uint64(2)] != 100 or text[i + np.uint64(3)] != _COLON:  # i, d
        return i
    start = end = i + np.uint64(4)
    while _ZERO <= text[end] <= _NINE:
        end += _ONE
    return end if end > start and _ends(text[end]) else i


@compiled
def _label(text, i, unlabelled):  # type: ignore[no-untyped-def]
    """(label, how well it is known, end, what is wrong) of the line that starts at ``i``."""
    value, end, known = _number(text, i)
    query = text[i] == _Q and _query(text, i) != i
    if query or text[end] == _COLON:
        return 0.0, _EXACT, i, NOTHING if unlabelled else NO_LABEL
    if known == _BAD or not _ends(text[end]):
        return 0.0, _BAD, i, MANY_LABELS if text[end] == _COMMA else BAD_LABEL
    return value, known, end, NOTHING


@compiled
def _wrong_start(byte):  # type: ignore[no-untyped-def]
    """What is wrong with a field that does not start with a digit."""
    if byte == _MINUS:
        return NEGATIVE_INDEX
    if byte == _RETURN:
        return STRAY_RETURN
    return BAD_QUERY if byte == _Q else BAD_INDEX


@compiled
def _wrong_index(index, digits, previous, smallest):  # type: ignore[no-untyped-def]
    """What is wrong with an index, if anything is."""
    if index > LARGEST_INDEX or digits > 18:
        return HUGE_INDEX
    if index <= previous:
        return REPEATED_INDEX if index == previous else UNSORTED_INDEX
    return SMALL_INDEX if index < smallest else NOTHING


@compiled
def parse(  # type: ignore[no-untyped-def]
    text, start, stop, unlabelled, smallest, limit, drop, row, entry, indptr, labels, indices, values, odd
):
    """Parse the lines of ``text[start:stop]`` into the arrays, from slots ``row`` and ``entry`` on.

    Indices from ``limit`` on are dropped or refused. A number that float64 arithmetic does not settle goes to
    ``odd`` as (start, end, slot), a label's slot as ``-1 - row``, for the caller to convert. Returns the next free
    slots, how many odd numbers there are, one more than the largest index, and what stopped the parser and where.
    """
    odds, largest, i = 0, -1, start
    while i < stop:
        i = _blanks(text, i)
        if text[i] == _NEWLINE:
            i += _ONE
            continue
        value, known, end, wrong = _label(text, i, unlabelled)
        if wrong != NOTHING:
            return row, entry, odds, largest + 1, wrong, i
        labels[row] = value
        if known != _EXACT:
            odd[odds, 0], odd[odds, 1], odd[odds, 2] = i, end, -1 - np.int64(row)
            odds += 1
        i, previous = end, _NO_FIELD
        while True:
            i = _blanks(text, i)
            if text[i] == _NEWLINE:
                break
            at = i
            number, i = digits(text, i, np.uint64(0))
            index, byte = np.int64(number), text[i]
            if i == at:
                i = _query(text, i) if byte == _Q and previous == _NO_FIELD else i
                if i == at:
                    return row, entry, odds, largest + 1, _wrong_start(byte), at
                previous = _NO_INDEX
                continue
            if byte != _COLON:
                return row, entry, odds, largest + 1, NO_COLON if _ends(byte) else BAD_INDEX, at
            wrong = _wrong_index(index, np.int64(i - at), previous, smallest)
            if wrong != NOTHING or (index >= limit and not drop):
                return row, entry, odds, largest + 1, EXTRA_INDEX if wrong == NOTHING else wrong, at
            previous = index
            at = i + _ONE
            value, i, known = _number(text, at)
            if known == _BAD or not _ends(text[i]):
                return row, entry, odds, largest + 1, NO_VALUE if _ends(text[at]) else BAD_VALUE, at
            single, known = _single(value, known)
            if not np.isfinite(single):
                return row, entry, odds, largest + 1, INFINITE_VALUE, at
            if index < limit:
                if known == _LONG:
                    odd[odds, 0], odd[odds, 1], odd[odds, 2] = at, i, entry
                    odds += 1
                indices[entry], values[entry] = index, single
                entry += _ONE
                largest = max(largest, index)
        i += _ONE
        row += _ONE
        indptr[row] = entry
    return row, entry, odds, largest + 1, NOTHING, i
