"""Conversion of numbers of any length, in time that grows with the length.

Python's ``float`` takes time in the square of the length. No digit after the 800th changes the result, except by not
being zero: 767 digits are the most that lie between two neighbouring numbers.
"""

from __future__ import annotations

import re

_SIGNIFICANT = 800
_PARTS = re.compile(rb"([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?)0*(\d+))?")


def to_float(text: bytes) -> float:
    """Return the number of a decimal text, correctly rounded.

    >>> to_float(b"-12.5e-1"), to_float(b"0." + b"3" * 10**6), to_float(b"1" * 10**6), to_float(b"1e-" + b"9" * 10**6)
    (-1.25, 0.3333333333333333, inf, 0.0)
    """
    if len(text) <= _SIGNIFICANT:
        return float(text)
    found = _PARTS.fullmatch(text)
    if found is None:
        return float(text[:_SIGNIFICANT] + b"?")  # This raises the error of a text that is no number.
    sign, whole, fraction, exponent_sign, exponent = found.groups(b"")
    digits = (whole + fraction).lstrip(b"0")
    point = len(whole) - (len(whole) + len(fraction) - len(digits))
    # An exponent of 15 digits outweighs any length of the digits.
    power = int(exponent[:15] or 0) if len(exponent) <= 15 else 10**15
    power = point - power if exponent_sign == b"-" else point + power
    more = b"1" if digits[_SIGNIFICANT:].strip(b"0") else b""
    return float(b"%s0.%s%se%d" % (sign, digits[:_SIGNIFICANT] or b"0", more, power))
