"""Compiled kernels on disk, shared by all processes and runs.

Numba keeps machine code beside the source, or in ``NUMBA_CACHE_DIR``. It takes a file for current while the source file
that *defines* a function is unchanged. Here what counts is a digest of the function and of everything it calls.
And where several processes want a kernel that nobody has compiled yet, as in a parallel search, one compiles it and
the others wait for the file.
"""

# mypy: disable-error-code="no-untyped-call, attr-defined"

from __future__ import annotations

import contextlib
import gc
import os
import sys
import time
import uuid
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache

LONGEST_WAIT_SECONDS = 120.0  # for another process that compiles the same kernel; then this one does too
LOOK_SECONDS = 0.02  # between two looks whether it is done
_PROCESS = uuid.uuid4().hex[:12]
_lock_files: dict[Path, int | None] = {}  # of each folder; they stay open, since closing one gives up all its locks

if sys.platform != "win32":
    import fcntl


class KernelCache(FunctionCache):
    """The files of one function."""

    def __init__(self, function: Callable[..., Any], digest: Callable[[Any], str]) -> None:
        super().__init__(function)
        self._digest, self._stamped, self._locked = digest, False, False
        # Numba numbers the files of one function, a file for each signature. Two processes that compile at the same
        # time would count to the same number, and one signature would be given the other's machine code.
        file = self._cache_file
        file._data_name_pattern = file._data_name_pattern.replace(".{number:d}.", f".{{number:d}}-{_PROCESS}.")

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load machine code; if there is none, see to it that nobody else compiles it meanwhile."""
        if not self._stamped:  # not when it is made: what it calls may be defined further down
            self._cache_file._source_stamp, self._stamped = self._digest(self._py_func), True
        found = self._read(sig, target_context)
        if found is None and self._lock():
            found = self._read(sig, target_context)
            if found is not None:
                self.release()
        return found

    def _read(self, sig: Any, target_context: Any) -> Any:
        """Read a file; one that is damaged, or names modules that are called otherwise by now, counts as missing."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # unpickling can fail in any way
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep machine code, and let others have it."""
        try:
            super().save_overload(sig, data)
        finally:
            self.release()

    def _lock(self) -> bool:
        """Wait while another process compiles this function; whether it did, so that another look is worth it."""
        if self._locked or not self._enabled:
            return False
        waited, limit = False, time.monotonic() + LONGEST_WAIT_SECONDS
        while not self._try(lock=True):
            waited = True
            if time.monotonic() > limit:
                return True
            time.sleep(LOOK_SECONDS)
        self._locked = True
        return waited

    def release(self) -> None:
        """Let other processes compile this function, if they have to."""
        if self._locked:
            self._locked = False
            self._try(lock=False)

    def _try(self, lock: bool) -> bool:
        """Lock or unlock the byte of the folder's lock file that stands for this function; False: another has it."""
        file = self._lock_file()
        if file is None:
            return True
        byte = zlib.crc32(self._cache_file._index_name.encode())
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB if lock else fcntl.LOCK_UN, 1, byte)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            return True
        return True

    def _lock_file(self) -> int | None:
        folder = Path(self._cache_path)
        if folder not in _lock_files:
            _lock_files[folder] = None
            if sys.platform != "win32":
                with contextlib.suppress(OSError):  # nothing can be kept there either
                    self._impl.locator.ensure_cache_path()
                    _lock_files[folder] = os.open(folder / "hogwild-kernels.lock", os.O_CREAT | os.O_RDWR)
        return _lock_files[folder]


def kept_on_disk(dispatcher: Any, digest: Callable[[Any], str]) -> Any:
    """Let what a dispatcher compiles be kept in a :class:`KernelCache`."""
    if numba.config.DISABLE_JIT:  # it is the plain function
        return dispatcher
    cache = KernelCache(dispatcher.py_func, digest)
    compile_one = dispatcher._compiler.compile

    def compile_and_release(*given: Any) -> Any:
        try:
            with _no_garbage_collection():
                return compile_one(*given)
        except BaseException:
            cache.release()
            raise

    dispatcher._compiler.compile = compile_and_release
    dispatcher._cache = cache
    return dispatcher


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Let nobody look for garbage: a compiler makes millions of objects that live until it is done."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
