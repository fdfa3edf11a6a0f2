"""Parser of whole numbers in memory, by address, eight digits at a time.

In a loop over digits the branch predictor fails at the end of nearly every number, which costs more than the digits.
This parser loads eight bytes as one word. Arithmetic on the word, without a branch, gives the end of the digits and
their value. The word is little-endian, as on every processor that numba compiles for. Functions take addresses instead
of arrays, because a compiled function that passes an array counts its references. That costs as much as several digits.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from hogwild.jit import compiled

_EIGHT: Final = np.uint64(8)
_ZEROS: Final = np.uint64(0x3030303030303030)
# Adding this constant sets the high bit of each byte that is 10 or more.
_TO_HIGH_BIT: Final = np.uint64(0x7676767676767676)
_HIGH_BITS: Final = np.uint64(0x8080808080808080)
_TENS: Final = 10 ** np.arange(9, dtype=np.uint64)


def _load(bits: int, at: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer()), align=1)

    return getattr(types, f"uint{bits}")(at), build


def _byte(typing: Any, at: Any) -> Any:
    return _load(8, at)


def _eight_bytes(typing: Any, at: Any) -> Any:
    return _load(64, at)


def _count_trailing_zeros(typing: Any, word: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(word), build


byte: Any = intrinsic(_byte)  # Function that returns the byte at an address.
_word: Any = intrinsic(_eight_bytes)  # Function that returns the eight bytes from an address on.
_trailing_zeros: Any = intrinsic(_count_trailing_zeros)


@compiled
def _worth(word: Any) -> Any:
    """Return the decimal value of eight bytes from 0 to 9, combined as pairs, then as fours, then as eight."""
    word = (word * np.uint64(10 * 256 + 1)) >> np.uint64(8)
    word = ((word & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(100 * 65536 + 1)) >> np.uint64(16)
    return ((word & np.uint64(0x0000FFFF0000FFFF)) * np.uint64((10_000 << 32) + 1)) >> np.uint64(32)


@compiled
def digits(at: Any, stop: Any, before: Any) -> tuple[Any, Any]:
    r"""Parse the digits at an address, append them to the number ``before``, and return (number, end) modulo 2**64.

    The text extends to ``stop``, and has a byte that is not a digit at ``at`` or after it.

    >>> text = np.frombuffer(b"12345:0.5\n", np.uint8)
    >>> start = text.ctypes.data
    >>> number, end = digits(np.uint64(start), np.uint64(start + 10), np.uint64(0))
    >>> number, end - start
    (12345, 5)
    """
    while at + _EIGHT <= stop:
        word = _word(at) ^ _ZEROS
        # A carry changes only bytes after the first byte that is not a digit, and only that first byte matters.
        others = ((word + _TO_HIGH_BIT) | word) & _HIGH_BITS
        if others == 0:
            before = before * _TENS[8] + _worth(word)
            at += _EIGHT
            continue
        bits = _trailing_zeros(others) & np.uint64(56)
        if bits == 0:
            return before, at
        length = bits >> np.uint64(3)
        return before * _TENS[length] + _worth(word << (np.uint64(64) - bits)), at + length
    while 48 <= byte(at) <= 57:
        before = before * np.uint64(10) + np.uint64(byte(at) - 48)
        at += np.uint64(1)
    return before, at
