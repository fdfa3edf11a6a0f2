"""Atomic instructions, the locks that are made of them, and prefetches: what Python has no words for."""

# mypy: disable-error-code="attr-defined, no-untyped-call, call-arg, unreachable"

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing import signature
from numba.extending import intrinsic

from hogwild.jit import compiled
from hogwild.kernels.futex import nap, pause

SPINS = 300  # looks at a lock, some microseconds, before a thread sleeps between two of them


def _address(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
    kind, (array, index) = signature_.args[0], args[:2]
    view = context.make_array(kind)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, kind, view, [index], wraparound=False)


@intrinsic
def exchange_if(typingctx: Any, array: Any, index: Any, expected: Any, new: Any) -> Any:
    """Store ``new`` if ``expected`` is found there; say whether it was."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        address = _address(context, builder, signature_, args)
        result = builder.cmpxchg(address, args[2], args[3], "acq_rel", "monotonic")
        return builder.extract_value(result, 1)

    return signature(types.boolean, array, types.intp, array.dtype, array.dtype), generate


@intrinsic
def load(typingctx: Any, array: Any, index: Any) -> Any:
    """Read one element as other threads last wrote it."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        address = _address(context, builder, signature_, args)
        return builder.load_atomic(address, "acquire", array.dtype.bitwidth // 8)

    return signature(array.dtype, array, types.intp), generate


@intrinsic
def store(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Write one element after everything written before it."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        address = _address(context, builder, signature_, args)
        builder.store_atomic(args[2], address, "release", array.dtype.bitwidth // 8)
        return context.get_constant(types.int32, 0)

    return signature(types.int32, array, types.intp, array.dtype), generate


@intrinsic
def fetch_add(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Add to one element; say what was there before."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _address(context, builder, signature_, args), args[2], "acq_rel")

    return signature(array.dtype, array, types.intp, array.dtype), generate


def _word(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
    """Where a number of a table is, as a whole one of as many bits: those with a point have no exchange everywhere."""
    kind, (array, *at) = signature_.args[0], args[:3]
    view = context.make_array(kind)(context, builder, array)
    address = cgutils.get_item_pointer(context, builder, kind, view, at, wraparound=False)
    return builder.bitcast(address, ir.IntType(kind.dtype.bitwidth).as_pointer())


@intrinsic
def exchange(typingctx: Any, table: Any, row: Any, column: Any, new: Any) -> Any:
    """Write a number of a table; say what it was before."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        place = _word(context, builder, signature_, args)
        found = builder.atomic_rmw("xchg", place, builder.bitcast(args[3], place.type.pointee), "acq_rel")
        return builder.bitcast(found, args[3].type)

    return signature(table.dtype, table, types.intp, types.intp, table.dtype), generate


@intrinsic
def load_of(typingctx: Any, table: Any, row: Any, column: Any) -> Any:
    """Read a number of a table as other threads last wrote it."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        place = _word(context, builder, signature_, args)
        found = builder.load_atomic(place, "acquire", table.dtype.bitwidth // 8)
        return builder.bitcast(found, context.get_value_type(table.dtype))

    return signature(table.dtype, table, types.intp, types.intp), generate


def _ask_for(context: Any, builder: Any, signature_: Any, args: Any, write: int, near: int = 3) -> Any:
    kind, (array, *at) = signature_.args[0], args
    view = context.make_array(kind)(context, builder, array)
    address = cgutils.get_item_pointer(context, builder, kind, view, at, wraparound=False)
    byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
    shape = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
    function = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")
    builder.call(function, [builder.bitcast(address, byte), word(write), word(near), word(1)])
    return context.get_constant(types.int32, 0)


@intrinsic
def prefetch_to_write(typingctx: Any, table: Any, row: Any, column: Any) -> Any:
    """Ask for the cache line of a number in a table; whoever has it loses it."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        return _ask_for(context, builder, signature_, args, write=1)

    return signature(types.int32, table, types.intp, types.intp), generate


@intrinsic
def prefetch_near(typingctx: Any, table: Any, row: Any, column: Any) -> Any:
    """Ask for the cache line of a number in a table, to the second cache: fewer can be on the way to the first."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        return _ask_for(context, builder, signature_, args, write=0, near=2)

    return signature(types.int32, table, types.intp, types.intp), generate


@intrinsic
def prefetch(typingctx: Any, table: Any, row: Any) -> Any:
    """Ask for the cache line in which a row of a table begins, to read it."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        first = [context.get_constant(types.intp, 0)] * (table.ndim - 1)
        return _ask_for(context, builder, signature_, [*args, *first], write=0)

    return signature(types.int32, table, types.intp), generate


@compiled
def lock(locks: Any, at: Any) -> None:
    """Take a lock, waiting while another thread has it.

    A lock is held for a row at most. A wait is longer only if the holder was put aside by the scheduler: then this
    thread sleeps between its looks, and leaves the holder its core. So the holder need not wake anybody.
    """
    tries = 0
    while not exchange_if(locks, at, 0, 1):
        tries += 1
        if tries <= SPINS:
            pause()
        else:
            nap()


@compiled
def unlock(locks: Any, at: Any) -> None:
    """Give a lock back."""
    store(locks, at, 0)
