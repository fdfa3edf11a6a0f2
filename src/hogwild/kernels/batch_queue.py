"""Batch of samples whose parts several threads claim, described in one C structure.

Threads of another library call a function with a single address. So a :class:`Sheet` holds all arguments of a kernel,
and the address is that of the sheet.
"""

# mypy: disable-error-code="name-defined, attr-defined, no-untyped-call, call-arg, unreachable"
# ruff: noqa: F821  (a kernel's parts are bound when it is specialised)

from __future__ import annotations

import ctypes
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from hogwild.jit import Function, entry
from hogwild.kernels.atomics import fetch_add

SIZES = ("rows", "width", "remembered", "samples", "nonzeros", "valued", "parts", "room")
PLACES = ("table", "squares", "indices", "offsets", "values", "sums", "cuts", "own", "steps", "marks")


class Sheet(ctypes.Structure):
    """Sizes of a batch, and the addresses of its arrays, which must not move during the call.

    There are ``samples + 1`` offsets. There are ``parts + 1`` cuts, and a part lies between two neighbouring cuts. Each
    part has private memory for ``room`` non-zeros: their indices (``own``), their ``steps``, and ``marks``, which hold
    the first non-zero of each sample.
    """

    _fields_ = (
        ("next", ctypes.c_int64), *((name, ctypes.c_int64) for name in (*SIZES, *PLACES)), ("rate", ctypes.c_float)
    )  # fmt: skip


SHEET = np.dtype(Sheet)


def take_parts(address: Any) -> None:
    """Claim parts of a batch one after the other until none is left; any number of threads may call this function."""
    given = numba.carray(address, (1,), SHEET)[0]
    taken = numba.carray(address, (1,), np.int64)  # The counter ``next`` is the first field of the sheet.
    table = numba.carray(pointer(given.table), (given.rows, given.width), np.float32)
    squares = numba.carray(pointer(given.squares), (given.remembered,), np.float32)
    indices = indices_at(given.indices, given.nonzeros)
    offsets = numba.carray(pointer(given.offsets), (given.samples + 1,), np.int64)
    values = numba.carray(pointer(given.values), (given.valued,), np.float32)
    sums = numba.carray(pointer(given.sums), (given.samples, given.width), np.float32)
    cuts = numba.carray(pointer(given.cuts), (given.parts + 1,), np.int64)
    part = fetch_add(taken, 0, 1)
    while part < given.parts:
        own = indices_at(given.own + part * given.room * indices.itemsize, given.room)
        steps = numba.carray(pointer(given.steps + part * given.room * 4), (given.room,), np.float32)
        marks = numba.carray(pointer(given.marks + part * (given.samples + 1) * 8), (given.samples + 1,), np.int64)
        batch = table, indices, offsets, values, sums
        kernel(batch, squares, given.rate, own, steps, marks, cuts[part], cuts[part + 1])
        part = fetch_add(taken, 0, 1)


@intrinsic
def pointer(typingctx: Any, address: Any) -> Any:
    """Convert an address to a pointer."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(types.intp), generate


def in_32_bits(address: Any, count: Any) -> Any:
    """Return ``count`` indices of 32 bits.

    They are unsigned, so that the compiler adds no code for negative indices.
    """
    return numba.carray(pointer(address), (count,), np.uint32)


def in_64_bits(address: Any, count: Any) -> Any:
    """Return ``count`` unsigned indices of 64 bits."""
    return numba.carray(pointer(address), (count,), np.uint64)


def in_parts(kernel: Function, long: bool) -> Any:
    """Compile a C function that calls ``kernel(batch, squares, ..., first, last)`` for the parts of a sheet's batch."""
    return entry(take_parts, kernel=kernel, indices_at=in_64_bits if long else in_32_bits)
