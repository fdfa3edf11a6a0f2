"""Loads of bytes and words at addresses in compiled functions.

Compiled functions of text take addresses instead of arrays, because a compiled function that passes an array counts its
references, which costs as much as several characters. Words are little-endian, as on every processor that Numba
compiles for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

# Definition of an intrinsic: the Numba signature, and the function that builds the code.
Definition = tuple[object, Callable[..., object]]


def _load(kind: types.Type, of_memory: ir.Type, at: types.Type) -> Definition:
    def build(context: object, builder: ir.IRBuilder, signature: object, arguments: Sequence[ir.Value]) -> ir.Value:
        return builder.load(builder.inttoptr(arguments[0], of_memory.as_pointer()), align=1)

    return kind(at), build


def _byte(typing: object, at: types.Type) -> Definition:
    return _load(types.uint8, ir.IntType(8), at)


def _four_bytes(typing: object, at: types.Type) -> Definition:
    return _load(types.uint32, ir.IntType(32), at)


def _eight_bytes(typing: object, at: types.Type) -> Definition:
    return _load(types.uint64, ir.IntType(64), at)


def _single_float(typing: object, at: types.Type) -> Definition:
    return _load(types.float32, ir.FloatType(), at)


def _count_trailing_zeros(typing: object, word: types.Type) -> Definition:
    def build(context: object, builder: ir.IRBuilder, signature: object, arguments: Sequence[ir.Value]) -> ir.Value:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(word), build


byte: Any = intrinsic(_byte)  # Function that returns the byte at an address.
four_bytes: Any = intrinsic(_four_bytes)  # Function that returns the four bytes from an address on.
eight_bytes: Any = intrinsic(_eight_bytes)  # Function that returns the eight bytes from an address on.
single_float: Any = intrinsic(_single_float)  # Function that returns the number in single precision at an address.
trailing_zeros: Any = intrinsic(_count_trailing_zeros)
