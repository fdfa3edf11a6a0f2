"""A batch of samples whose parts are taken by whoever has time, described on one sheet.

Threads of another library call a function with one address. So what a kernel needs is written on a sheet, and the
address is the sheet's.
"""

# mypy: disable-error-code="name-defined, attr-defined, no-untyped-call, call-arg, unreachable"
# ruff: noqa: F821  (a kernel's parts are bound when it is specialised)

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from hogwild.compiled import Function, entry
from hogwild.kernels.atomics import fetch_add

Array = NDArray[Any]

PLACES = ("table", "squares", "indices", "offsets", "values", "sums", "steps", "cuts")
SIZES = ("rows", "width", "remembered", "samples", "nonzeros", "valued", "parts")
SHEET = np.dtype([("next", np.int64), *((name, np.int64) for name in (*SIZES, *PLACES)), ("rate", np.float32)])


def sheet(
    table: Array, squares: Array, indices: Array, offsets: Array, values: Array, sums: Array, steps: Array, rate: float,
    cuts: Array,
) -> Array:  # fmt: skip
    """A batch as a kernel in parts has it: all of these must stay where they are until it is done.

    There is one more of ``offsets`` than there are samples, and of ``cuts``, between which the parts are, than parts.
    """
    sizes = (*table.shape, len(squares), len(offsets) - 1, len(indices), len(values), len(cuts) - 1)
    places = (table, squares, indices, offsets, values, sums, steps, cuts)
    addresses = (array.__array_interface__["data"][0] for array in places)
    return np.array([(0, *sizes, *addresses, rate)], SHEET)


def take_parts(address: Any) -> None:
    """Take parts of a batch, one after the other, until there are none: any number of threads may."""
    given = numba.carray(address, (1,), SHEET)[0]
    taken = numba.carray(address, (1,), np.int64)  # "next", the first on the sheet
    table = numba.carray(pointer(given.table), (given.rows, given.width), np.float32)
    squares = numba.carray(pointer(given.squares), (given.remembered,), np.float32)
    indices = indices_at(given.indices, given.nonzeros)
    offsets = numba.carray(pointer(given.offsets), (given.samples + 1,), np.int64)
    values = numba.carray(pointer(given.values), (given.valued,), np.float32)
    sums = numba.carray(pointer(given.sums), (given.samples, given.width), np.float32)
    steps = numba.carray(pointer(given.steps), (given.nonzeros,), np.float32)
    cuts = numba.carray(pointer(given.cuts), (given.parts + 1,), np.int64)
    part = fetch_add(taken, 0, 1)
    while part < given.parts:
        kernel(table, squares, indices, offsets, values, sums, steps, given.rate, cuts[part], cuts[part + 1])
        part = fetch_add(taken, 0, 1)


@intrinsic
def pointer(typingctx: Any, address: Any) -> Any:
    """What is at an address."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(types.intp), generate


def in_32_bits(address: Any, count: Any) -> Any:
    """Indices, without a sign, so that the compiler need not think of negative ones."""
    return numba.carray(pointer(address), (count,), np.uint32)


def in_64_bits(address: Any, count: Any) -> Any:
    """Indices in the other size."""
    return numba.carray(pointer(address), (count,), np.uint64)


def in_parts(kernel: Function, long: bool) -> Any:
    """A function of C that calls ``kernel(table, squares, ..., first, last)`` for the parts of the batch on a sheet."""
    return entry(take_parts, kernel=kernel, indices_at=in_64_bits if long else in_32_bits)
