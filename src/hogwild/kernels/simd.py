"""Vectors of consecutive numbers of a table's row, held in registers, and the updates of SGD and AdaGrad on them.

In a loop over the numbers of two rows, the compiler cannot prove that the rows do not overlap. So it checks at run time
and keeps sums in memory. Kernels hold sums in registers with the functions of this module. :class:`Lanes` is a type of
compiled code only, without a Python counterpart.

The compiler turns a Python loop over factors into a scalar one, because two rows of a table could overlap. A check for
overlap at run time costs more than short rows gain. So the updates are LLVM vector instructions.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing import signature
from numba.extending import intrinsic, models, register_model

# mypy: disable-error-code="attr-defined, no-untyped-call, misc, no-any-return, call-arg, unreachable"


# Flags of LLVM operations: multiply-adds may be fused, and no other relaxation is allowed, as in all kernels.
FUSED = ("contract",)


class Lanes(types.Type):
    """Numba type of a vector of ``count`` numbers, in single precision unless ``number`` is another type."""

    def __init__(self, count: int, number: types.Float = types.float32) -> None:
        self.count, self.number = count, number
        super().__init__(f"Lanes({count}, {number})")


@register_model(Lanes)
class _Registers(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        number = ir.DoubleType() if kind.number == types.float64 else ir.FloatType()
        super().__init__(manager, kind, ir.VectorType(number, kind.count))


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
def zeros_like(typingctx: Any, table: Any, count: Any) -> Any:
    """Return a vector of zeros of a table's type, whose length is a compile-time constant."""
    lanes = Lanes(count.literal_value, table.dtype)

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        return context.get_value_type(lanes)([0.0] * lanes.count)

    return lanes(table, count), generate


@intrinsic(prefer_literal=True)
def take(typingctx: Any, table: Any, row: Any, column: Any, count: Any) -> Any:
    """Read numbers of a row from a column on; their count is a compile-time constant."""
    lanes = Lanes(count.literal_value, table.dtype)

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

    return signature(own, own, own.number, own), generate


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


_FOUR = 4
_VECTOR = ir.VectorType(ir.FloatType(), _FOUR)


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
        parts = [builder.extract_element(product, ir.IntType(32)(lane)) for lane in range(_FOUR)]
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
        root_of = cgutils.get_or_insert_function(builder.module, shape, f"llvm.sqrt.v{_FOUR}f32")
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
