"""Primitives of waiting: a pause instruction, a clock, and sleep in the operating system until woken (futex).

A thread that only spins or yields keeps its core busy. On a machine with other work, the scheduler then has no reason
to move the awaited thread to that core. A wait of a microsecond becomes one of many time slices. Where there is no
futex (not Linux), threads sleep for a fixed ``NAP_MICROSECONDS`` and look again.
"""

# mypy: disable-error-code="attr-defined, no-untyped-call, call-arg, call-overload, unreachable, return-value"

from __future__ import annotations

import platform
import sys
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing import signature
from numba.extending import intrinsic

from hogwild.jit import compiled

_yield = types.ExternalFunction("sched_yield", types.int32())
_sched_getcpu = types.ExternalFunction("sched_getcpu", types.int32())
_usleep = types.ExternalFunction("usleep", types.int32(types.uint32))

# Microseconds of sleep between two looks, where no other thread wakes the sleeper.
NAP_MICROSECONDS = 50

_FUTEX_NUMBERS = {"x86_64": 202, "AMD64": 202, "aarch64": 98, "riscv64": 98, "ppc64le": 221}
_FUTEX_NUMBER = _FUTEX_NUMBERS.get(platform.machine())
ON_LINUX = sys.platform == "linux"
HAS_FUTEX = ON_LINUX and sys.byteorder == "little" and sys.maxsize > 2**32 and _FUTEX_NUMBER is not None
_WAIT_PRIVATE, _WAKE_PRIVATE = 128, 129
_CLOCK_MONOTONIC = 6 if sys.platform == "darwin" else 1
# LLVM's names of instructions that take tens of cycles, each with its arguments.
_X86_PAUSE, _ARM_BARRIER = ("llvm.x86.sse2.pause", ()), ("llvm.aarch64.isb", (15,))
_PAUSES = {"x86_64": _X86_PAUSE, "AMD64": _X86_PAUSE, "aarch64": _ARM_BARRIER, "arm64": _ARM_BARRIER}

_BYTE, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


def _pointer(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
    kind, (array, index) = signature_.args[0], args[:2]
    view = context.make_array(kind)(context, builder, array)
    address = cgutils.get_item_pointer(context, builder, kind, view, [index], wraparound=False)
    return builder.bitcast(address, _BYTE.as_pointer())


def _futex(builder: Any, word: Any, operation: int, value: Any, timeout: Any) -> Any:
    """Call futex(2) on the low half of a word.

    For a wait, ``value`` is the expected content of the word. For a wake, ``value`` is the number of threads to wake.
    """
    arguments = [_I64, _BYTE.as_pointer(), _I64, _I64, _BYTE.as_pointer(), _BYTE.as_pointer(), _I64]
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_I64, arguments), "syscall")
    nothing = ir.Constant(_BYTE.as_pointer(), None)
    wide = builder.sext(value, _I64) if value.type.width < 64 else value
    builder.call(function, [_I64(_FUTEX_NUMBER), word, _I64(operation), wide, timeout or nothing, nothing, _I64(0)])


@intrinsic
def pause(typingctx: Any) -> Any:
    """Tell the processor that this loop waits."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        name, given = _PAUSES.get(platform.machine(), (None, ()))
        if name is not None:
            kind = ir.FunctionType(ir.VoidType(), [_I32] * len(given))
            builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [_I32(word) for word in given])
        return context.get_constant(types.int32, 0)

    return signature(types.int32), generate


@intrinsic
def fence(typingctx: Any) -> Any:
    """Make all writes before the fence visible to other threads before any read after the fence."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_constant(types.int32, 0)

    return signature(types.int32), generate


@intrinsic
def microseconds(typingctx: Any) -> Any:
    """Read a monotonic clock, in microseconds."""

    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        moment = cgutils.alloca_once(builder, ir.ArrayType(_I64, 2))
        kind = ir.FunctionType(_I32, [_I32, _BYTE.as_pointer()])
        function = cgutils.get_or_insert_function(builder.module, kind, "clock_gettime")
        builder.call(function, [_I32(_CLOCK_MONOTONIC), builder.bitcast(moment, _BYTE.as_pointer())])
        seconds, nanoseconds = (builder.load(cgutils.gep_inbounds(builder, moment, 0, part)) for part in (0, 1))
        return builder.add(builder.mul(seconds, _I64(1_000_000)), builder.sdiv(nanoseconds, _I64(1_000)))

    return signature(types.int64), generate


@intrinsic
def _sleep_while(typingctx: Any, array: Any, index: Any, value: Any, limit: Any) -> Any:
    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        timeout = cgutils.alloca_once(builder, ir.ArrayType(_I64, 2))
        million = _I64(1_000_000)
        for part, amount in (
            (0, builder.sdiv(args[3], million)),
            (1, builder.mul(builder.srem(args[3], million), _I64(1_000))),
        ):
            builder.store(amount, cgutils.gep_inbounds(builder, timeout, 0, part))
        word = _pointer(context, builder, signature_, args)
        _futex(builder, word, _WAIT_PRIVATE, args[2], builder.bitcast(timeout, _BYTE.as_pointer()))
        return context.get_constant(types.int32, 0)

    return signature(types.int32, array, types.intp, types.int64, types.int64), generate


@intrinsic
def _wake(typingctx: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature_: Any, args: Any) -> Any:
        _futex(builder, _pointer(context, builder, signature_, args), _WAKE_PRIVATE, _I64(2**31 - 1), None)
        return context.get_constant(types.int32, 0)

    return signature(types.int32, array, types.intp), generate


@compiled
def sleep_while(array: Any, index: Any, value: Any, limit: Any) -> None:
    """Sleep while an element has this value, until :func:`wake` or for ``limit`` microseconds.

    The sleep may end earlier, so the caller has to check the element again.
    """
    if HAS_FUTEX:
        _sleep_while(array, index, value, limit)
    else:
        _usleep(min(limit, NAP_MICROSECONDS))


@compiled
def wake(array: Any, index: Any) -> None:
    """Wake all threads that sleep on an element; the caller has changed the element before."""
    if HAS_FUTEX:
        _wake(array, index)


@compiled
def offer_core() -> None:
    """Yield this core to another runnable thread, if there is one."""
    _yield()


@compiled
def nap() -> None:
    """Sleep for ``NAP_MICROSECONDS``; no other thread need wake this one."""
    _usleep(NAP_MICROSECONDS)


@compiled
def current_core() -> int:
    """Return the number of the core on which this thread runs, or -1 where the system cannot tell."""
    if ON_LINUX:
        return _sched_getcpu()
    return -1
