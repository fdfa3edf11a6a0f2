"""Rows of a table on a GPU: four numbers in one load, and atomic additions of several numbers at once.

A gather of single numbers costs as much as one of 16 bytes, so what a coordinate needs lies in one row. GPUs from
compute capability 9.0 on add two or four numbers by one atomic operation; others add one at a time.
"""

# mypy: disable-error-code="name-defined, attr-defined, no-untyped-call, no-any-return, no-untyped-def, misc"
# ruff: noqa: F821

from __future__ import annotations

import functools
import threading
from math import floor
from typing import Any

import numpy as np

from hogwild.jit import Function, bind
from hogwild.kernels.cuda_jit import cuda, simulated

VECTOR = 4  # numbers of a load


def padded(numbers: int) -> int:
    """Return the width of a row of at least this many numbers that consists of whole vectors.

    >>> padded(3), padded(4), padded(5)
    (4, 4, 8)
    """
    return -(-numbers // VECTOR) * VECTOR


def load_row(table: Any, u: Any, rows: Any, n: Any) -> None:
    """Copy row ``u`` of a table to row ``n`` of a local array."""
    for first in range(0, WIDTH, VECTOR):
        a, b, c, d = load_vector(table, u * WIDTH + first)
        rows[n, first], rows[n, first + 1], rows[n, first + 2], rows[n, first + 3] = a, b, c, d


def add_one(table: Any, u: Any, changes: Any) -> None:
    """Add a number to row ``u``."""
    cuda.atomic.add(table, (u, 0), changes[0])


def add_pair(table: Any, u: Any, changes: Any) -> None:
    """Add two numbers to row ``u``."""
    add_vector(table, u * WIDTH, changes[0], changes[1])


def add_four(table: Any, u: Any, changes: Any) -> None:
    """Add four numbers to row ``u``."""
    add_vector(table, u * WIDTH, changes[0], changes[1], changes[2], changes[3])


def add_each(table: Any, u: Any, changes: Any) -> None:
    """Add numbers to row ``u``, one after the other."""
    for c in range(NUMBERS):
        cuda.atomic.add(table, (u, c), changes[c])


def add_fixed(table: Any, u: Any, changes: Any) -> None:
    """Add numbers to row ``u`` of a table of whole numbers, whose sums do not depend on the order of additions."""
    for c in range(NUMBERS):
        cuda.atomic.add(table, (u, c), np.int64(floor(np.float64(changes[c]) * FIXED + 0.5)))


@functools.cache
def fixed_adder(numbers: int, fixed: float) -> Function:
    """Return the function that adds the first numbers of a local array to a row, as multiples of ``1 / fixed``."""
    return bind(_simulated_add_fixed if simulated() else add_fixed, NUMBERS=numbers, FIXED=fixed)


def add_row_pair(table: Any, u: Any, rows: Any, n: Any) -> None:
    """Add the first two numbers of row ``n`` of a local array to row ``u`` of a flat table."""
    add_vector(table, u * WIDTH, rows[n, 0], rows[n, 1])


def add_row_vectors(table: Any, u: Any, rows: Any, n: Any) -> None:
    """Add the first numbers of row ``n`` of a local array to row ``u`` of a flat table, whole vectors at once."""
    for first in range(0, WHOLE, VECTOR):
        add_vector(table, u * WIDTH + first, rows[n, first], rows[n, first + 1], rows[n, first + 2], rows[n, first + 3])
    for c in range(WHOLE, NUMBERS):
        cuda.atomic.add(table, u * WIDTH + c, rows[n, c])


@functools.cache
def row_loader(width: int) -> Function:
    """Return the function that copies a row of ``width`` numbers, a multiple of ``VECTOR``, to a local array."""
    return bind(load_row, WIDTH=width, load_vector=_simulated_load if simulated() else _loader())


@functools.cache
def fresh_row_loader(width: int) -> Function:
    """Return the function that copies a row to a local array as other threads left it, as :func:`fresh_load` does."""
    return bind(load_row, WIDTH=width, load_vector=fresh_load())


@functools.cache
def row_adder(numbers: int, width: int) -> Function:
    """Return the function that adds the first ``numbers`` numbers of a local array of ``VECTOR`` or more to a row.

    The others of a vector must be zero.
    """
    if simulated():
        return bind(_simulated_add, NUMBERS=numbers)
    if numbers == 1:
        return add_one
    if numbers > VECTOR or cuda.get_current_device().compute_capability < (9, 0):
        return bind(add_each, NUMBERS=numbers)
    pair = numbers == 2
    return bind(add_pair if pair else add_four, WIDTH=width, add_vector=_adder(2 if pair else VECTOR))


def fresh_load() -> Any:
    """Return the function that loads four numbers from a position of a contiguous array, as other threads left them.

    Multiprocessors have caches of their own, which do not see what others have stored since. This load passes by them.
    """
    return _simulated_load if simulated() else _loader("ld.global.cg.v4.f32")


def store() -> Any:
    """Return the function that stores four numbers at a position of a contiguous array."""
    return _simulated_store if simulated() else _storer()


def prefetch() -> Any:
    """Return the function that asks for the 128 bytes around a position of an array, which are then soon at hand."""
    return _simulated_prefetch if simulated() else _prefetcher()


def _simulated_prefetch(table: Any, position: Any) -> None:
    pass


def _simulated_store(table: Any, position: Any, a: Any, b: Any, c: Any, d: Any) -> None:
    u, first = position // table.shape[1], position % table.shape[1]
    table[u, first], table[u, first + 1], table[u, first + 2], table[u, first + 3] = a, b, c, d


@functools.cache
def flat_row_adder(numbers: int, width: int) -> Function:
    """Return the function that adds the first ``numbers`` numbers of a row of a local array to a row of a flat table.

    Rows of the table have ``width`` numbers.
    """
    if simulated():
        return bind(_simulated_row_add, NUMBERS=numbers, WIDTH=width)
    if cuda.get_current_device().compute_capability < (9, 0):
        return bind(add_row_vectors, WHOLE=0, NUMBERS=numbers, WIDTH=width, add_vector=_adder(VECTOR))
    if numbers == 2:
        return bind(add_row_pair, WIDTH=width, add_vector=_adder(2))
    whole = numbers // VECTOR * VECTOR
    return bind(add_row_vectors, WHOLE=whole, NUMBERS=numbers, WIDTH=width, add_vector=_adder(VECTOR))


def _simulated_load(table: Any, position: Any) -> Any:
    flat = table.reshape(-1)
    return flat[position], flat[position + 1], flat[position + 2], flat[position + 3]


def _simulated_row_add(table: Any, u: Any, rows: Any, n: Any) -> None:
    with _ADDING:
        for c in range(NUMBERS):
            table[u * WIDTH + c] += rows[n, c]


def _simulated_add(table: Any, u: Any, changes: Any) -> None:
    # The simulator's atomic functions are known to kernels alone, not to functions that they call.
    with _ADDING:
        for c in range(NUMBERS):
            table[u, c] += changes[c]


def _simulated_add_fixed(table: Any, u: Any, changes: Any) -> None:
    with _ADDING:
        for c in range(NUMBERS):
            table[u, c] += np.int64(floor(np.float64(changes[c]) * FIXED + 0.5))


_ADDING = threading.Lock()


@functools.cache
def _loader(instruction: str = "ld.global.v4.f32") -> Any:
    """Return the function that loads four numbers from a position of a contiguous array."""
    from llvmlite import ir
    from numba.cuda import types
    from numba.cuda.extending import intrinsic

    @intrinsic
    def load(context, table, position):
        def generate(context, builder, signature, arguments):
            address = _address(context, builder, signature, arguments)
            number = ir.FloatType()
            form = ir.FunctionType(ir.LiteralStructType([number] * VECTOR), [ir.IntType(64)])
            text = f"{instruction} {{$0, $1, $2, $3}}, [$4];"
            found = builder.call(ir.InlineAsm(form, text, "=f,=f,=f,=f,l", side_effect=True), [address])
            parts = [builder.extract_value(found, part) for part in range(VECTOR)]
            return context.make_tuple(builder, signature.return_type, parts)

        return types.UniTuple(types.float32, VECTOR)(table, types.int64), generate

    return load


@functools.cache
def _prefetcher() -> Any:
    """Return the function that brings the 128 bytes around a position of an array into the cache of all threads."""
    from llvmlite import ir
    from numba.cuda import types
    from numba.cuda.extending import intrinsic

    @intrinsic
    def ask(context, table, position):
        def generate(context, builder, signature, arguments):
            address = _address(context, builder, signature, arguments)
            form = ir.FunctionType(ir.VoidType(), [ir.IntType(64)])
            builder.call(ir.InlineAsm(form, "prefetch.global.L2 [$0];", "l", side_effect=True), [address])
            return context.get_dummy_value()

        return types.void(table, types.int64), generate

    return ask


@functools.cache
def _storer() -> Any:
    """Return the function that stores four numbers at a position of a contiguous array."""
    from llvmlite import ir
    from numba.cuda import types
    from numba.cuda.extending import intrinsic

    @intrinsic
    def store_all(context, table, position, a, b, c, d):
        def generate(context, builder, signature, arguments):
            address = _address(context, builder, signature, arguments)
            form = ir.FunctionType(ir.VoidType(), [ir.IntType(64), *[ir.FloatType()] * VECTOR])
            text = "st.global.v4.f32 [$0], {$1, $2, $3, $4};"
            call = ir.InlineAsm(form, text, "l,f,f,f,f", side_effect=True)
            builder.call(call, [address, *arguments[2:]])
            return context.get_dummy_value()

        return types.void(table, types.int64, *[types.float32] * VECTOR), generate

    return store_all


@functools.cache
def _adder(numbers: int) -> Any:
    """Return the function that adds two or four numbers at a position of a contiguous array, atomically each."""
    from llvmlite import ir
    from numba.cuda import types
    from numba.cuda.extending import intrinsic

    def generate(context, builder, signature, arguments):
        address = _address(context, builder, signature, arguments)
        form = ir.FunctionType(ir.VoidType(), [ir.IntType(64), *[ir.FloatType()] * numbers])
        places = ", ".join(f"${place}" for place in range(1, numbers + 1))
        text = f"red.global.add.v{numbers}.f32 [$0], {{{places}}};"
        call = ir.InlineAsm(form, text, ",".join(["l", *["f"] * numbers]), side_effect=True)
        builder.call(call, [address, *arguments[2:]])
        return context.get_dummy_value()

    @intrinsic
    def add_two(context, table, position, a, b):
        return types.void(table, types.int64, types.float32, types.float32), generate

    @intrinsic
    def add_all(context, table, position, a, b, c, d):
        return types.void(table, types.int64, *[types.float32] * VECTOR), generate

    return add_two if numbers == 2 else add_all


def _address(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return the address of a position of an array of float32."""
    from llvmlite import ir

    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    start, whole = builder.ptrtoint(array.data, ir.IntType(64)), ir.IntType(64)
    return builder.add(start, builder.mul(arguments[1], ir.Constant(whole, 4)))
