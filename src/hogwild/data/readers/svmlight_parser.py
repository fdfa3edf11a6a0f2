"""The compiled part of the svmlight reader: bytes in, arrays out.

The text is a run of whole lines in memory, each ending with a newline. No loop runs past a newline, so none needs to
ask where the text ends.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hogwild.compiled import compiled
from hogwild.data.readers.digits import byte, digits
from hogwild.data.reading import LARGEST_INDEX

# What stopped the parser: nothing, or a field that is no good as what it should be. Words are found elsewhere.
NOTHING, LABEL, INDEX, VALUE = range(4)

# How well a number is known: its float64 exactly; to a few units in the last place; its extent only; not a number.
_EXACT, _CLOSE, _LONG, _BAD = range(4)

_ONE: Final = np.uint64(1)
_POWERS: Final = np.array([float(f"1e{power}") for power in range(65)])
_NEWLINE, _RETURN, _SPACE, _TAB, _HASH, _COLON = 10, 13, 32, 9, 35, 58
_PLUS, _MINUS, _POINT, _ZERO, _NINE, _Q = 43, 45, 46, 48, 57, 113
_ENDS: Final = sum(1 << byte for byte in (_SPACE, _NEWLINE, _TAB, _RETURN, _HASH))


@compiled
def count(text, start, stop):  # type: ignore[no-untyped-def]
    """(lines, colons) of a stretch of text: room enough for what :func:`parse` finds there."""
    lines = colons = 0
    for character in text[start:stop]:
        lines += character == _NEWLINE
        colons += character == _COLON
    return lines, colons


@compiled
def _number(at, stop):  # type: ignore[no-untyped-def]
    """(value, end, how well it is known) of the decimal number at ``at``."""
    negative, positive = byte(at) == _MINUS, byte(at) == _PLUS
    if negative or positive:
        at += _ONE
    mantissa, start = np.uint64(0), at
    while _ZERO <= byte(at) <= _NINE:  # mostly one digit
        mantissa = np.uint64(10) * mantissa + np.uint64(byte(at) - _ZERO)
        at += _ONE
    count, exponent = np.int64(at - start), np.int64(0)
    if byte(at) == _POINT:
        point = at
        mantissa, at = digits(at + _ONE, stop, mantissa)
        exponent = np.int64(point) + 1 - np.int64(at)
        count -= exponent
    if count == 0:
        return 0.0, at, _BAD
    if count > 18:
        while byte(start) == _ZERO or byte(start) == _POINT:  # leading zeros do not count
            count -= byte(start) == _ZERO
            start += _ONE
    if byte(at) == 101 or byte(at) == 69:  # e, E
        at += _ONE
        shrinks, grows = byte(at) == _MINUS, byte(at) == _PLUS
        if shrinks or grows:
            at += _ONE
        start, power = at, 0
        while _ZERO <= byte(at) <= _NINE:
            if power < 1 << 40:
                power = 10 * power + (byte(at) - _ZERO)
            at += _ONE
        if at == start:
            return 0.0, at, _BAD
        exponent += -power if shrinks else power
    if count > 18 or not -64 <= exponent <= 64:
        return 0.0, at, _LONG
    whole = np.int64(mantissa)
    value = whole / _POWERS[np.uint64(-exponent)] if exponent < 0 else whole * _POWERS[np.uint64(exponent)]
    known = _EXACT if whole <= 1 << 53 and -22 <= exponent <= 22 else _CLOSE  # one rounding, or up to four
    return -value if negative else value, at, known


@compiled
def _ends(first):  # type: ignore[no-untyped-def]
    """Whether this byte ends a field."""
    return first <= _HASH and (_ENDS >> first) & 1 == 1


@compiled
def _blanks(at):  # type: ignore[no-untyped-def]
    """Where the blanks, and a comment behind them, end."""
    while byte(at) == _SPACE or byte(at) == _TAB:
        at += _ONE
    if byte(at) == _HASH:
        while byte(at) != _NEWLINE and byte(at) != 0:
            at += _ONE
    if byte(at) == _RETURN and byte(at + _ONE) == _NEWLINE:
        at += _ONE
    return at


@compiled
def _label(at, stop, unlabelled):  # type: ignore[no-untyped-def]
    """(label, how well it is known, end) of the line that starts at ``at``."""
    value, end, known = _number(at, stop)
    if unlabelled and (byte(at) == _Q or byte(end) == _COLON):
        return 0.0, at, _EXACT
    return value, end, known if _ends(byte(end)) else _BAD


@compiled
def parse(  # type: ignore[no-untyped-def]
    start, stop, unlabelled, smallest, limit, drop, row, entry, indptr, labels, indices, values, odd
):
    """Parse the lines from address ``start`` to ``stop`` into the arrays, from slots ``row`` and ``entry`` on.

    Indices from ``limit`` on are dropped or refused. A number that float64 arithmetic does not settle goes to
    ``odd`` as (start, end, slot), a label's slot as ``-1 - row``, for the caller to convert. Returns the next free
    slots, how many odd numbers there are, one more than the largest index, and what stopped the parser and where.
    """
    odds, largest, at = 0, np.int64(-1), start
    while at < stop:
        at = _blanks(at)
        if byte(at) == _NEWLINE:
            at += _ONE
            continue
        value, end, known = _label(at, stop, unlabelled)
        if known == _BAD:
            return row, entry, odds, largest + 1, LABEL, at
        labels[row] = value
        if known != _EXACT:
            odd[odds, 0], odd[odds, 1], odd[odds, 2] = at, end, -1 - np.int64(row)
            odds += 1
        at, previous, query = end, smallest - 1, True
        while True:
            at = _blanks(at)
            if byte(at) == _NEWLINE:
                break
            if query and byte(at) == _Q and byte(at + _ONE) == 105 and byte(at + np.uint64(2)) == 100:  # q, i, d
                colon = at + np.uint64(3)
                _, end = digits(colon + _ONE, stop, np.uint64(0))
                if byte(colon) != _COLON or end == colon + _ONE or not _ends(byte(end)):
                    return row, entry, odds, largest + 1, INDEX, at
                at, query = end, False
                continue
            number, colon = digits(at, stop, np.uint64(0))
            index, length = np.int64(number), colon - at
            if byte(colon) != _COLON or length == 0 or length > np.uint64(18) or index > LARGEST_INDEX:
                return row, entry, odds, largest + 1, INDEX, at
            if index <= previous or (index >= limit and not drop):
                return row, entry, odds, largest + 1, INDEX, at
            previous, query, at = index, False, colon + _ONE
            value, end, known = _number(at, stop)
            single = np.float32(value)
            if known == _BAD or not np.isfinite(single) or not _ends(byte(end)):
                return row, entry, odds, largest + 1, VALUE, at
            if index < limit:
                if known == _CLOSE and np.float32(value * (1 - 2.0**-50)) != np.float32(value * (1 + 2.0**-50)):
                    known = _LONG  # so near to where rounding changes that the error of the value matters
                if known == _LONG:
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
