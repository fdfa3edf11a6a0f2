"""Atomic instructions, and spin locks made of them, which Python does not offer."""

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

# Number of spins, together a few microseconds, before a thread sleeps between two looks at a lock.
SPINS = 300


def _address(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
    kind, (array, index) = signature_.args[0], args[:2]
    view = context.make_array(kind)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, kind, view, [index], wraparound=False)


@intrinsic
def exchange_if(typingctx: Any, array: Any, index: Any, expected: Any, new: Any) -> Any:
    """Store ``new`` if the element equals ``expected``, and return whether it did."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        address = _address(context, builder, signature_, args)
        result = builder.cmpxchg(address, args[2], args[3], "acq_rel", "monotonic")
        return builder.extract_value(result, 1)

    return signature(types.boolean, array, types.intp, array.dtype, array.dtype), generate


@intrinsic
def load(typingctx: Any, array: Any, index: Any) -> Any:
    """Read one element as other threads last wrote it (acquire)."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        address = _address(context, builder, signature_, args)
        return builder.load_atomic(address, "acquire", array.dtype.bitwidth // 8)

    return signature(array.dtype, array, types.intp), generate


@intrinsic
def store(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Write one element after everything that this thread wrote before (release)."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        address = _address(context, builder, signature_, args)
        builder.store_atomic(args[2], address, "release", array.dtype.bitwidth // 8)
        return context.get_constant(types.int32, 0)

    return signature(types.int32, array, types.intp, array.dtype), generate


@intrinsic
def fetch_add(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Add to one element, and return its value before the addition."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _address(context, builder, signature_, args), args[2], "acq_rel")

    return signature(array.dtype, array, types.intp, array.dtype), generate


def _word(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
    """Return the address of a table's number, cast to an integer of the same width.

    Not every processor has an atomic exchange of floating-point numbers.
    """
    kind, (array, *at) = signature_.args[0], args[:3]
    view = context.make_array(kind)(context, builder, array)
    address = cgutils.get_item_pointer(context, builder, kind, view, at, wraparound=False)
    return builder.bitcast(address, ir.IntType(kind.dtype.bitwidth).as_pointer())


@intrinsic
def exchange(typingctx: Any, table: Any, row: Any, column: Any, new: Any) -> Any:
    """Write a number of a table, and return the number that was there before."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        place = _word(context, builder, signature_, args)
        found = builder.atomic_rmw("xchg", place, builder.bitcast(args[3], place.type.pointee), "acq_rel")
        return builder.bitcast(found, args[3].type)

    return signature(table.dtype, table, types.intp, types.intp, table.dtype), generate


@intrinsic
def load_of(typingctx: Any, table: Any, row: Any, column: Any) -> Any:
    """Read a number of a table as other threads last wrote it (acquire)."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        place = _word(context, builder, signature_, args)
        found = builder.load_atomic(place, "acquire", table.dtype.bitwidth // 8)
        return builder.bitcast(found, context.get_value_type(table.dtype))

    return signature(table.dtype, table, types.intp, types.intp), generate


@compiled
def lock(locks: Any, at: Any) -> None:
    """Take a lock, and wait while another thread has the lock.

    A thread holds a lock for one row at most. A wait is longer than that only if the scheduler has suspended the
    holder. The waiting thread then sleeps between two looks, which leaves its core to the holder. As the waiting thread
    wakes by itself, the holder need not wake any thread.
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
    """Release a lock."""
    store(locks, at, 0)
