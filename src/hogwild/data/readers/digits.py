"""Whole numbers in text, eight digits at a time.

A loop over digits guesses wrong at the end of nearly every number, which costs more than the digits do. Here eight
bytes are one word: where its digits end and what they are worth is arithmetic on the word, without a branch. The word
is read in little-endian order, as on every processor that numba compiles for.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from hogwild.compiled import compiled

_EIGHT: Final = np.uint64(8)
_ZEROS: Final = np.uint64(0x3030303030303030)
_TO_HIGH_BIT: Final = np.uint64(0x7676767676767676)  # a byte from 10 on sets its high bit when this is added
_HIGH_BITS: Final = np.uint64(0x8080808080808080)
_TENS: Final = 10 ** np.arange(9, dtype=np.uint64)


@intrinsic
def _word(typing: Any, text: Any, i: Any) -> Any:
    """The eight bytes of the text from ``i`` on."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        start = builder.bitcast(builder.gep(array.data, [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(start, align=1)

    return types.uint64(text, i), build


@intrinsic
def _trailing_zeros(typing: Any, word: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(word), build


@compiled
def _worth(word):  # type: ignore[no-untyped-def]
    """What eight bytes of 0 to 9 are worth as a decimal number: pairs, then fours, then all eight."""
    word = (word * np.uint64(10 * 256 + 1)) >> np.uint64(8)
    word = ((word & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(100 * 65536 + 1)) >> np.uint64(16)
    return ((word & np.uint64(0x0000FFFF0000FFFF)) * np.uint64((10_000 << 32) + 1)) >> np.uint64(32)


@compiled
def digits(text, i, before):  # type: ignore[no-untyped-def]
    r"""(number, end): the digits at ``i`` put behind the number ``before``, modulo 2**64, and where they end.

    The text must have a byte that is not a digit at ``i`` or behind it.

    >>> digits(np.frombuffer(b"1 12345:0.5\n", np.uint8), np.uint64(2), np.uint64(0))
    (12345, 7)
    """
    while i + _EIGHT <= np.uint64(len(text)):
        word = _word(text, i) ^ _ZEROS
        others = ((word + _TO_HIGH_BIT) | word) & _HIGH_BITS  # a carry spoils only bytes behind the first that counts
        if others == 0:
            before = before * _TENS[8] + _worth(word)
            i += _EIGHT
            continue
        bits = _trailing_zeros(others) & np.uint64(56)
        if bits == 0:
            return before, i
        length = bits >> np.uint64(3)
        return before * _TENS[length] + _worth(word << (np.uint64(64) - bits)), i + length
    while 48 <= text[i] <= 57:
        before = before * np.uint64(10) + np.uint64(text[i] - 48)
        i += np.uint64(1)
    return before, i
