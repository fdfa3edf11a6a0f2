"""AdaGrad steps and dot products of two rows of factors, four numbers at a time.

As in :mod:`hogwild.kernels.simd_sgd`, the compiler would turn a Python loop into a scalar one. Scores consist of the
dot products.
"""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing import signature
from numba.extending import intrinsic

from hogwild.kernels.simd import FUSED, place, splat

LANES = 4
_VECTOR = ir.VectorType(ir.FloatType(), LANES)


def _place(context: Any, builder: Any, kind: Any, table: Any, row: Any, column: int) -> Any:
    """Return a pointer to four consecutive numbers of a column."""
    return place(context, builder, kind, table, [row, context.get_constant(types.intp, column)], _VECTOR)


@intrinsic
def dot_of_fours(typingctx: Any, table: Any, one: Any, other: Any) -> Any:
    """Return the dot product of four values of a table and four others."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        table_, *rows = args
        kind = signature_.args[0]
        left, right = (builder.load(_place(context, builder, kind, table_, row, 0), align=4) for row in rows)
        product = builder.fmul(left, right)
        parts = [builder.extract_element(product, ir.IntType(32)(lane)) for lane in range(LANES)]
        return builder.fadd(builder.fadd(parts[0], parts[2]), builder.fadd(parts[1], parts[3]))

    return signature(types.float32, table, types.intp, types.intp), generate


@intrinsic
def adagrad_of_fours(typingctx: Any, table: Any, one: Any, other: Any, g: Any, rate: Any, l2: Any) -> Any:
    """Step four values along ``g`` times four others, and the others along ``g`` times the four.

    The arithmetic is that of :func:`hogwild.rules.adagrad`. The first column of the table holds the values, and the
    second the sums of their squared gradients.
    """

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        table_, rows, kind = args[0], args[1:3], signature_.args[0]
        slope, rate_, penalty = (splat(builder, _VECTOR, number) for number in args[3:])
        places = [[_place(context, builder, kind, table_, row, column) for column in (0, 1)] for row in rows]
        values = [builder.load(place[0], align=4) for place in places]
        shape = ir.FunctionType(_VECTOR, [_VECTOR])
        root_of = cgutils.get_or_insert_function(builder.module, shape, f"llvm.sqrt.v{LANES}f32")
        for (value_at, sum_at), w, along in zip(places, values, reversed(values), strict=True):
            gradient = builder.fmul(slope, along, flags=FUSED)
            squares = builder.fadd(
                builder.load(sum_at, align=4), builder.fmul(gradient, gradient, flags=FUSED), flags=FUSED
            )
            builder.store(squares, sum_at, align=4)
            pull = builder.fadd(gradient, builder.fmul(w, penalty, flags=FUSED), flags=FUSED)
            stiff = builder.fadd(
                builder.call(root_of, [squares]), builder.fmul(rate_, penalty, flags=FUSED), flags=FUSED
            )
            change = builder.fdiv(builder.fmul(rate_, pull, flags=FUSED), stiff, flags=FUSED)
            builder.store(builder.fsub(w, change, flags=FUSED), value_at, align=4)
        return context.get_constant(types.int32, 0)

    single = (types.float32,) * 3
    return signature(types.int32, table, types.intp, types.intp, *single), generate
