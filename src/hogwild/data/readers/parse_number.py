"""Compiled conversion of digits to whole numbers and to floating-point numbers.

In a loop over digits the branch predictor fails at the end of nearly every number, which costs more than the digits.
This parser loads eight bytes as one word. Arithmetic on the word, without a branch, gives the end of the digits and
their value. The word is little-endian, as on every processor that numba compiles for. Functions take addresses instead
of arrays, because a compiled function that passes an array counts its references. That costs as much as several digits.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hogwild.data.memory_words import byte, eight_bytes, trailing_zeros
from hogwild.jit import compiled, compiled_part

_EIGHT: Final = np.uint64(8)
_ZEROS: Final = np.uint64(0x3030303030303030)
# Adding this constant sets the high bit of each byte that is 10 or more.
_TO_HIGH_BIT: Final = np.uint64(0x7676767676767676)
_HIGH_BITS: Final = np.uint64(0x8080808080808080)
_TENS: Final = 10 ** np.arange(9, dtype=np.uint64)


@compiled
def _decimal_value(word: np.uint64) -> np.uint64:
    """Return the decimal value of eight bytes from 0 to 9, combined as pairs, then as fours, then as eight."""
    word = (word * np.uint64(10 * 256 + 1)) >> np.uint64(8)
    word = ((word & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(100 * 65536 + 1)) >> np.uint64(16)
    return ((word & np.uint64(0x0000FFFF0000FFFF)) * np.uint64((10_000 << 32) + 1)) >> np.uint64(32)


@compiled
def digits(at: np.uint64, stop: np.uint64, before: np.uint64) -> tuple[Any, Any]:
    r"""Parse the digits at an address, append them to the number ``before``, and return (number, end) modulo 2**64.

    The text extends to ``stop``, and has a byte that is not a digit at ``at`` or after it.

    >>> text = np.frombuffer(b"12345:0.5\n", np.uint8)
    >>> start = text.ctypes.data
    >>> number, end = digits(np.uint64(start), np.uint64(start + 10), np.uint64(0))
    >>> number, end - start
    (12345, 5)
    """
    while at + _EIGHT <= stop:
        word = eight_bytes(at) ^ _ZEROS
        # A carry changes only bytes after the first byte that is not a digit, and only that first byte matters.
        others = ((word + _TO_HIGH_BIT) | word) & _HIGH_BITS
        if others == 0:
            before = before * _TENS[8] + _decimal_value(word)
            at += _EIGHT
            continue
        bits = trailing_zeros(others) & np.uint64(56)
        if bits == 0:
            return before, at
        length = bits >> np.uint64(3)
        return before * _TENS[length] + _decimal_value(word << (np.uint64(64) - bits)), at + length
    while 48 <= byte(at) <= 57:
        before = before * np.uint64(10) + np.uint64(byte(at) - 48)
        at += np.uint64(1)
    return before, at


# Accuracy of a parsed number: exact float64, within SLACK, only its extent is known, or not a number.
EXACT, CLOSE, LONG, BAD = range(4)

SLACK: Final = 2.0**-50  # Bound on the relative error of four roundings.

_ONE: Final = np.uint64(1)
_POWERS: Final = np.array([float(f"1e{power}") for power in range(65)])
_PLUS, _MINUS, _POINT, _ZERO, _NINE = 43, 45, 46, 48, 57


@compiled_part
def number(at: np.uint64, stop: np.uint64) -> tuple[Any, Any, Any]:
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
