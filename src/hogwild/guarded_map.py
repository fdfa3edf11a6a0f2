"""Memory-mapped files that another program may cut short while they are read.

A read of a mapped page behind the end of its file raises SIGBUS, which ends the process without a message. Within
the mappings of this module a handler puts pages of zeros there instead, and marks the mapping. The reader asks
:func:`cut_short` afterwards, and raises an error that names the file. Other faults go to the handler from before.

The handler is machine code, because it runs in any thread at any moment, and Python code cannot.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import sys
import threading
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SLOTS = 4096  # mappings that are guarded at a time
_START, _STOP, _HIT = 0, 1, 2  # columns of the table of mappings
_FAULT_ADDRESS = 16  # offset of the address in the description of a fault (siginfo_t) on 64-bit Linux
_READ_ONLY, _FIXED_PRIVATE_ANONYMOUS = 1, 0x32  # PROT_READ, and flags of mmap on Linux
_WITH_INFORMATION, _ON_OTHER_STACK = 4, 0x08000000  # SA_SIGINFO and SA_ONSTACK

_table: NDArray[np.int64] = np.zeros((_SLOTS, 3), np.int64)
_slots: weakref.WeakKeyDictionary[mmap.mmap, int] = weakref.WeakKeyDictionary()
_lock = threading.Lock()
_code: list[Any] = []  # the compiled handler and what it refers to, which must outlive every thread


def _unlock() -> None:
    """Replace the lock in a forked process, because a thread that only its parent has may hold it."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)


class _Action(ctypes.Structure):
    """Structure ``sigaction`` of the C library."""

    _fields_ = (
        ("handler", ctypes.c_void_p), ("mask", ctypes.c_byte * 128), ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )  # fmt: skip


def map_file(descriptor: int, size: int) -> mmap.mmap:
    """Map the first bytes of an open file for reading, guarded where the platform allows it.

    >>> import os, tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     _ = file.write(bytes(3 * mmap.PAGESIZE)); _ = file.flush()
    ...     pages = map_file(file.fileno(), 3 * mmap.PAGESIZE)
    ...     _ = file.truncate(1)
    ...     pages[2 * mmap.PAGESIZE], cut_short(pages)
    (0, True)
    """
    pages = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
    if sys.platform == "linux" and sys.maxsize > 2**32:
        with _lock:
            _install()
            free = np.flatnonzero(_table[:, _STOP] == 0)
            if free.size:
                _guard(pages, int(free[0]))
    return pages


def cut_short(pages: mmap.mmap) -> bool:
    """Return whether bytes of a mapping were read that its file does not have any more."""
    slot = _slots.get(pages)
    return slot is not None and bool(_table[slot, _HIT])


def _guard(pages: mmap.mmap, slot: int) -> None:
    address = np.frombuffer(pages, np.uint8).ctypes.data
    _table[slot, _HIT] = 0
    _table[slot, _STOP] = address + -(-len(pages) // mmap.PAGESIZE) * mmap.PAGESIZE
    _table[slot, _START] = address
    _slots[pages] = slot
    weakref.finalize(pages, _release, slot).atexit = False


def _release(slot: int) -> None:
    _table[slot, _START] = 2**62  # no address is above it, so that the slot is not in use from here on
    _table[slot, _STOP] = 0


def _install() -> None:
    """Give the handler to the system, unless it has it; the handler from before gets all other faults.

    Others may have taken its place since the last call, as ``faulthandler`` does, which Ray enables.
    """
    if not _code:
        libc, before = ctypes.CDLL(None, use_errno=True), _Action()
        try:
            engine, address = _compiled(before, libc)
        except RuntimeError:  # of an LLVM that does not know this assembly: mappings are as without this module
            _code.append(None)
        else:
            action = _Action(handler=address, flags=_WITH_INFORMATION | _ON_OTHER_STACK)
            _code.extend([libc, before, action, engine])
    if _code[0] is None:
        return
    libc, before, action, _ = _code
    present = _Action()
    libc.sigaction(signal.SIGBUS, None, ctypes.byref(present))
    if present.handler != action.handler:
        ctypes.memmove(ctypes.byref(before), ctypes.byref(present), ctypes.sizeof(_Action))
        libc.sigaction(signal.SIGBUS, ctypes.byref(action), None)


def _compiled(before: _Action, libc: Any) -> tuple[Any, int]:
    """Return the engine that holds the handler, and the handler's address."""
    from llvmlite import binding

    import hogwild.jit  # noqa: F401  (Numba sets up LLVM)

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    engine = binding.create_mcjit_compiler(
        binding.parse_assembly(_assembly(before, libc)), binding.Target.from_default_triple().create_target_machine()
    )
    engine.finalize_object()
    return engine, int(engine.get_function_address("handle_bus_error"))


def _assembly(before: _Action, libc: Any) -> str:
    """Return the handler in LLVM's language.

    It looks for the address of the fault in the table. Within a mapping, it maps zeros from the page of the fault to
    the end of the mapping, and marks the slot. Else it restores the handler from before, and the fault comes again. If
    it comes here once more, because the handler from before restores this one, it ends the process.
    """
    map_pages = ctypes.cast(libc.mmap, ctypes.c_void_p).value
    set_action = ctypes.cast(libc.sigaction, ctypes.c_void_p).value
    return f"""
define void @handle_bus_error(i32 %number, i64 %information, i64 %context) {{
entry:
  %where = add i64 %information, {_FAULT_ADDRESS}
  %where.pointer = inttoptr i64 %where to i64*
  %address = load volatile i64, i64* %where.pointer
  br label %look
look:
  %slot = phi i64 [ 0, %entry ], [ %following, %next ]
  %row = mul i64 %slot, {3 * 8}
  %start.at = add i64 %row, {_table.ctypes.data + 8 * _START}
  %stop.at = add i64 %row, {_table.ctypes.data + 8 * _STOP}
  %start.pointer = inttoptr i64 %start.at to i64*
  %stop.pointer = inttoptr i64 %stop.at to i64*
  %start = load volatile i64, i64* %start.pointer
  %stop = load volatile i64, i64* %stop.pointer
  %above = icmp uge i64 %address, %start
  %below = icmp ult i64 %address, %stop
  %within = and i1 %above, %below
  br i1 %within, label %found, label %next
next:
  %following = add i64 %slot, 1
  %more = icmp ult i64 %following, {_SLOTS}
  br i1 %more, label %look, label %other
found:
  %page = and i64 %address, {-mmap.PAGESIZE}
  %size = sub i64 %stop, %page
  %map = inttoptr i64 {map_pages} to i64 (i64, i64, i32, i32, i32, i64)*
  %mapped = call i64 %map(i64 %page, i64 %size, i32 {_READ_ONLY}, i32 {_FIXED_PRIVATE_ANONYMOUS}, i32 -1, i64 0)
  %failed = icmp eq i64 %mapped, -1
  br i1 %failed, label %other, label %mark
mark:
  %hit.at = add i64 %row, {_table.ctypes.data + 8 * _HIT}
  %hit.pointer = inttoptr i64 %hit.at to i64*
  store volatile i64 1, i64* %hit.pointer
  ret void
other:
  %set = inttoptr i64 {set_action} to i32 (i32, i64, i64)*
  %restored = call i32 %set(i32 {int(signal.SIGBUS)}, i64 {ctypes.addressof(before)}, i64 0)
  %handler.pointer = inttoptr i64 {ctypes.addressof(before) + _Action.handler.offset} to i64*
  store volatile i64 {int(signal.SIG_DFL)}, i64* %handler.pointer
  ret void
}}
"""
