"""Vectors of consecutive numbers of a table's row, held in registers.

In a loop over the numbers of two rows, the compiler cannot prove that the rows do not overlap. So it checks at run time
and keeps sums in memory. Kernels hold sums in registers with the functions of this module. :class:`Lanes` is a type of
compiled code only, without a Python counterpart.
"""

# mypy: disable-error-code="attr-defined, no-untyped-call, misc, no-any-return"

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing import signature
from numba.extending import intrinsic, models, register_model

# Flags of LLVM operations: multiply-adds may be fused, and no other relaxation is allowed, as in all kernels.
FUSED = ("contract",)


class Lanes(types.Type):
    """Numba type of a vector of ``count`` single-precision numbers."""

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(f"Lanes({count})")


@register_model(Lanes)
class _Registers(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        super().__init__(manager, kind, ir.VectorType(ir.FloatType(), kind.count))


def place(context: Any, builder: Any, kind: Any, table: Any, at: Any, vector: Any) -> Any:
    """Return, at compile time, a pointer to the numbers of a table that a vector holds."""
    view = context.make_array(kind)(context, builder, table)
    address = cgutils.get_item_pointer(context, builder, kind, view, at, wraparound=False)
    return builder.bitcast(address, vector.as_pointer())


def splat(builder: Any, vector: Any, number: Any) -> Any:
    """Return, at compile time, a vector that has one number in all lanes."""
    nothing = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(nothing, number, ir.IntType(32)(0))
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, nothing, everywhere)


@intrinsic(prefer_literal=True)
def zeros(typingctx: Any, count: Any) -> Any:
    """Return a vector of zeros, whose length is a compile-time constant."""
    lanes = Lanes(count.literal_value)

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        return context.get_value_type(lanes)([0.0] * lanes.count)

    return lanes(count), generate


@intrinsic(prefer_literal=True)
def take(typingctx: Any, table: Any, row: Any, column: Any, count: Any) -> Any:
    """Read numbers of a row from a column on; their count is a compile-time constant."""
    lanes = Lanes(count.literal_value)

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        vector = context.get_value_type(lanes)
        return builder.load(place(context, builder, table, args[0], args[1:3], vector), align=4)

    return signature(lanes, table, types.intp, types.intp, count), generate


@intrinsic
def put(typingctx: Any, table: Any, row: Any, column: Any, lanes: Any) -> Any:
    """Write a vector to a row, from a column on."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        builder.store(args[3], place(context, builder, table, args[0], args[1:3], args[3].type), align=4)
        return context.get_constant(types.int32, 0)

    return signature(types.int32, table, types.intp, types.intp, lanes), generate


@intrinsic
def plus(typingctx: Any, own: Any, factor: Any, other: Any) -> Any:
    """Return own + factor * other, lane by lane."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        factors = splat(builder, args[0].type, args[1])
        return builder.fadd(args[0], builder.fmul(factors, args[2], flags=FUSED), flags=FUSED)

    return signature(own, own, types.float32, own), generate
