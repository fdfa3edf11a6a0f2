"""Instructions that fetch memory into the cache before it is needed, which Python does not offer."""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing import signature
from numba.extending import intrinsic


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
    """Prefetch the cache line of a table's number for writing, which takes the line from any other core that has it."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        return _ask_for(context, builder, signature_, args, write=1)

    return signature(types.int32, table, types.intp, types.intp), generate


@intrinsic
def prefetch_near(typingctx: Any, table: Any, row: Any, column: Any) -> Any:
    """Prefetch the cache line of a table's number to the second-level cache.

    More lines can be on the way to the second-level cache than to the first-level cache.
    """

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        return _ask_for(context, builder, signature_, args, write=0, near=2)

    return signature(types.int32, table, types.intp, types.intp), generate


@intrinsic
def prefetch(typingctx: Any, table: Any, row: Any) -> Any:
    """Prefetch the cache line in which a row of a table begins, for reading."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        first = [context.get_constant(types.intp, 0)] * (table.ndim - 1)
        return _ask_for(context, builder, signature_, [*args, *first], write=0)

    return signature(types.int32, table, types.intp), generate
