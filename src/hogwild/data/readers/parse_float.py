"""Parser of decimal numbers in memory, with results in float64."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hogwild.data.readers.parse_int import byte, digits
from hogwild.jit import compiled_part

# Accuracy of a parsed number: exact float64, within SLACK, only its extent is known, or not a number.
EXACT, CLOSE, LONG, BAD = range(4)

SLACK: Final = 2.0**-50  # Bound on the relative error of four roundings.

_ONE: Final = np.uint64(1)
_POWERS: Final = np.array([float(f"1e{power}") for power in range(65)])
_PLUS, _MINUS, _POINT, _ZERO, _NINE = 43, 45, 46, 48, 57


@compiled_part
def number(at: Any, stop: Any) -> tuple[Any, Any, Any]:
    r"""Parse the decimal number at an address, and return (value, end, accuracy).

    The text extends to ``stop``, and the number is followed by a byte that no number contains, such as a newline. If
    the accuracy is ``LONG``, the caller converts the text with Python's ``float``.

    >>> from hogwild.jit import compiled
    >>> @compiled
    ... def called(at, stop):
    ...     return number(at, stop)
    >>> text = np.frombuffer(b"-12.5e-1\n", np.uint8)
    >>> start = text.ctypes.data
    >>> value, end, known = called(np.uint64(start), np.uint64(start + 9))
    >>> value, end - start, known == EXACT
    (-1.25, 8, True)
    """
    negative, positive = byte(at) == _MINUS, byte(at) == _PLUS
    if negative or positive:
        at += _ONE
    mantissa, start = np.uint64(0), at
    while _ZERO <= byte(at) <= _NINE:  # The integer part mostly has one digit.
        mantissa = np.uint64(10) * mantissa + np.uint64(byte(at) - _ZERO)
        at += _ONE
    count, exponent = np.int64(at - start), np.int64(0)
    if byte(at) == _POINT:
        point = at
        mantissa, at = digits(at + _ONE, stop, mantissa)
        exponent = np.int64(point) + 1 - np.int64(at)
        count -= exponent
    if count == 0:
        return 0.0, at, BAD
    if count > 18:
        while byte(start) == _ZERO or byte(start) == _POINT:  # Leading zeros are not significant digits.
            count -= byte(start) == _ZERO
            start += _ONE
    if byte(at) == 101 or byte(at) == 69:  # The bytes are "e" and "E".
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
            return 0.0, at, BAD
        exponent += -power if shrinks else power
    if count > 18 or not -64 <= exponent <= 64:
        return 0.0, at, LONG
    whole = np.int64(mantissa)
    value = whole / _POWERS[np.uint64(-exponent)] if exponent < 0 else whole * _POWERS[np.uint64(exponent)]
    # The result has one rounding error if it is exact, and up to four if it is close.
    known = EXACT if whole <= 1 << 53 and -22 <= exponent <= 22 else CLOSE
    return -value if negative else value, at, known
