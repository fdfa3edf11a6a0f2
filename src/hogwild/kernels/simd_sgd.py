"""SGD steps along whole rows of factors, eight numbers at a time.

The compiler turns a Python loop over factors into a scalar one, because two rows of a table could overlap. A check for
overlap at run time costs more than short rows gain. So this module emits LLVM vector instructions.
"""

# mypy: disable-error-code="attr-defined, no-untyped-call, call-arg, unreachable"

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing import signature
from numba.extending import intrinsic

from hogwild.kernels.simd import FUSED, splat

LANES = 8


class _Rows:
    """Rows of a table of single-precision numbers, or of its first column, during code generation."""

    def __init__(self, context: Any, builder: Any, signature_: Any, args: Any, rows: int) -> None:
        kind = signature_.args[0]
        self.builder = builder
        self.data = context.make_array(kind)(context, builder, args[0]).data
        self.starts = [builder.gep(self.data, [start]) for start in args[1 : 1 + rows]]
        self.wide = args[1 + rows]
        self.vector = ir.VectorType(ir.FloatType(), LANES)
        self.g, self.pull, self.rate, self.low = (
            splat(builder, self.vector, number) for number in args[2 + rows : 6 + rows]
        )

    def places(self, f: Any) -> list[Any]:
        """Return pointers to the numbers from ``f`` on in each row."""
        pointer = self.vector.as_pointer()
        return [self.builder.bitcast(self.builder.gep(start, [f]), pointer) for start in self.starts]

    def times(self, one: Any, other: Any) -> Any:
        """Return the product of two vectors, lane by lane."""
        return self.builder.fmul(one, other, flags=FUSED)

    def step(self, place: Any, own: Any, along: Any) -> None:
        """Store own - rate (along + pull own), but at least the lower bound; NaN stays NaN."""
        builder = self.builder
        gradient = builder.fadd(along, self.times(self.pull, own), flags=FUSED)
        moved = builder.fsub(own, self.times(self.rate, gradient), flags=FUSED)
        above = builder.fcmp_unordered(">=", moved, self.low)
        builder.store(builder.select(above, moved, self.low), place, align=4)


# Types of g, pull, rate and the lower bound of a number.
_SINGLE = (types.float32,) * 4


@intrinsic
def sgd_of_two(typingctx: Any, table: Any, a: Any, b: Any, wide: Any, g: Any, pull: Any, rate: Any, low: Any) -> Any:
    """Step row ``a`` along ``g`` times row ``b``, and row ``b`` along ``g`` times row ``a``.

    L2 pulls both towards zero.
    """

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        rows = _Rows(context, builder, signature_, args, 2)
        with cgutils.for_range_slice(builder, rows.wide.type(0), rows.wide, rows.wide.type(LANES)) as (f, _):
            first, second = rows.places(f)
            p, q = builder.load(first, align=4), builder.load(second, align=4)
            rows.step(first, p, rows.times(rows.g, q))
            rows.step(second, q, rows.times(rows.g, p))
        return context.get_constant(types.int32, 0)

    return signature(types.int32, table, *(types.uint64,) * 3, *_SINGLE), generate


@intrinsic
def sgd_of_three(
    typingctx: Any, table: Any, a: Any, b: Any, c: Any, wide: Any, g: Any, pull: Any, rate: Any, low: Any
) -> Any:
    """Step row ``a`` along ``g`` times (``b`` - ``c``), and rows ``b`` and ``c`` along ``g`` and -``g`` times ``a``."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        rows = _Rows(context, builder, signature_, args, 3)
        with cgutils.for_range_slice(builder, rows.wide.type(0), rows.wide, rows.wide.type(LANES)) as (f, _):
            places = rows.places(f)
            p, q, r = (builder.load(place, align=4) for place in places)
            along = rows.times(rows.g, p)
            rows.step(places[0], p, rows.times(rows.g, builder.fsub(q, r, flags=FUSED)))
            rows.step(places[1], q, along)
            rows.step(places[2], r, builder.fneg(along))
        return context.get_constant(types.int32, 0)

    return signature(types.int32, table, *(types.uint64,) * 4, *_SINGLE), generate
