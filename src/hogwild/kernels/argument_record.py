"""Loops as C functions of one address: that of a record with all arguments.

Of a function that Python calls, Numba compiles a second one, which converts Python's objects. For a loop with twenty
arguments, that and a queue around the loop would take as long to compile as the loop itself. So the queue is compiled
once, for all loops (:func:`hogwild.kernels.work_queue.run_queue`), and calls the C function of a loop for each part.

A record is an array of words of 64 bits. An array is the address of its Python object, which must live as long as the
call. The elements of a tuple follow each other.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from hogwild.kernel_cache import EntryCompiler

# mypy: disable-error-code="no-untyped-call, attr-defined, call-arg, unreachable, misc"

WORD, NUMBER = ir.IntType(64), ir.DoubleType()
# Type of the C functions: (record, first term, last term, term of the first step size) -> summed loss.
SHAPE = ir.FunctionType(NUMBER, [WORD.as_pointer(), WORD, WORD, WORD])


def record_layout(kinds: tuple[types.Type, ...]) -> struct.Struct:
    """Return the layout of a record of arguments of these types.

    >>> record_layout((types.float32, types.Tuple((types.boolean, types.float64)))).format
    'dqd'
    """
    return struct.Struct("".join(_letters(each) for each in kinds))


def _letters(kind: types.Type) -> str:
    if isinstance(kind, types.BaseTuple):
        return "".join(_letters(each) for each in kind)
    return "d" if isinstance(kind, types.Float) else "q"


def record(layout: struct.Struct, arguments: tuple[Any, ...]) -> NDArray[np.int64]:
    """Return the record of arguments."""
    return np.frombuffer(layout.pack(*_words(arguments)), np.int64)


def _words(arguments: tuple[Any, ...]) -> list[Any]:
    words: list[Any] = []
    for each in arguments:
        if isinstance(each, np.ndarray):
            words.append(id(each))
        elif isinstance(each, tuple):
            words += _words(each)
        else:
            words.append(each)
    return words


@intrinsic
def call_with_record(typingctx: Any, function: Any, record: Any, low: Any, high: Any, before: Any) -> Any:
    """Call the C function at an address, for the terms from ``low`` to ``high``; return its result.

    The step sizes of the record begin with that of term ``before``.
    """

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        words = context.make_array(record)(context, builder, args[1]).data
        return builder.call(builder.inttoptr(args[0], SHAPE.as_pointer()), [words, *args[2:]])

    return types.float64(types.intp, record, types.intp, types.intp, types.intp), generate


def add_c_function(context: Any, library: Any, function: Any, environment: Any, call_helper: Any) -> None:
    """Add, at compile time, a C function that reads the arguments of ``function`` from a record.

    Of the arguments ``order`` and ``rates`` it passes those of the given terms.
    """
    module = context.create_module("record")
    own = ir.Function(module, SHAPE, function.llvm_cfunc_wrapper_name)
    callee = ir.Function(
        module, context.call_conv.get_function_type(function.restype, function.argtypes), function.llvm_func_name
    )
    builder = ir.IRBuilder(own.append_basic_block())
    address, low, high, before = own.args
    words = (builder.load(builder.gep(address, [WORD(at)])) for at in itertools.count())
    given = []
    for name, kind in zip(function.args, function.argtypes, strict=True):
        value = read_argument(context, builder, kind, words)
        if name == "order":
            value = slice_of(context, builder, kind, value, low, high)
        elif name == "rates":
            value = slice_of(context, builder, kind, value, builder.sub(low, before), builder.sub(high, before))
        given.append(value)
    status, result = context.call_conv.call_function(
        builder, callee, function.restype, function.argtypes, given, attrs=("noinline",)
    )
    if function.restype == types.none:
        builder.ret(NUMBER(0))
    else:
        # The only error of a loop is that there is no memory for its few numbers. The queue stops at NaN.
        builder.ret(builder.select(status.is_error, NUMBER(float("nan")), result))
    library.add_ir_module(module)


def read_argument(context: Any, builder: Any, kind: types.Type, words: Iterator[Any]) -> Any:
    """Return, at compile time, an argument that is made of the next words of a record."""
    if isinstance(kind, types.BaseTuple):
        return context.make_tuple(builder, kind, [read_argument(context, builder, each, words) for each in kind])
    word = next(words)
    if isinstance(kind, types.Array):
        return array_of(context, builder, kind, builder.inttoptr(word, cgutils.voidptr_t))
    if isinstance(kind, types.Float):
        return context.cast(builder, builder.bitcast(word, NUMBER), types.float64, kind)
    return context.cast(builder, word, types.int64, kind)


def array_of(context: Any, builder: Any, kind: types.Array, thing: Any) -> Any:
    """Return, at compile time, the array that a Python object is. Numba's function for that needs no lock."""
    array = context.make_array(kind)(context, builder)
    shape = ir.FunctionType(ir.IntType(32), [cgutils.voidptr_t, cgutils.voidptr_t])
    adapt = cgutils.get_or_insert_function(builder.module, shape, "numba_adapt_ndarray")
    builder.call(adapt, [thing, builder.bitcast(array._getpointer(), cgutils.voidptr_t)])
    return array._getvalue()


def slice_of(context: Any, builder: Any, kind: types.Array, value: Any, low: Any, high: Any) -> Any:
    """Return, at compile time, the elements from ``low`` to ``high`` of an array with one axis."""
    array = context.make_array(kind)(context, builder, value)
    array.data = cgutils.get_item_pointer(context, builder, kind, array, [low], wraparound=False)
    array.nitems = builder.sub(high, low)
    array.shape = cgutils.pack_array(builder, [array.nitems])
    return array._getvalue()


class RecordCompiler(EntryCompiler):
    """Compiler of C functions of a record."""

    add_c_function = staticmethod(add_c_function)
