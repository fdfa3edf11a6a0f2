"""Compilation of kernels: machine code on disk, shared by all processes and runs, and parts linked into their callers.

Machine code is kept beside the source, in ``NUMBA_CACHE_DIR`` or in another folder that no other user can write to
(:mod:`hogwild.cache_folder`). Numba considers a file current while the source file that *defines* a function is
unchanged. This cache compares a digest of the function and of everything that it calls.

Several processes may need a kernel that is not compiled yet, as in a parallel hyperparameter search. One of them then
compiles it, and the others wait for the file.

Before it reads a file, Numba loads all that it needs to compile, which takes longer than a small fit. This cache loads
what machine code needs to run.

Numba generates machine code of every function that it compiles, even of one that Python never calls. For the parts of a
kernel, that machine code takes a tenth of the compilation time, and memory that is never used.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import multiprocessing
import os
import sys
import time
import uuid
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from numba import _dynfunc
from numba.core import entrypoints
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    InTreeCacheLocator,
    IPythonCacheLocator,
    NullCache,
)
from numba.core.compiler import Compiler, CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.runtime import rtsys
from numba.core.typed_passes import NativeLowering

from hogwild.cache_folder import CacheFolder, cache_folder

if TYPE_CHECKING:
    from numba.core.ccallback import CFunc
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import StateDict
    from numba.core.dispatcher import Dispatcher
    from numba.core.environment import Environment
    from numba.core.funcdesc import PythonFunctionDescriptor

# mypy: disable-error-code="no-untyped-call, attr-defined"


# Longest wait for another process that compiles the same kernel, in seconds; then this process compiles it too.
LONGEST_WAIT_SECONDS = 120.0
POLL_SECONDS = 0.02  # Seconds between two attempts to lock a kernel.
_PROCESS = uuid.uuid4().hex[:12]
# Descriptor of the lock file of each folder; None: the folder cannot be locked. The descriptor stays open, because
# closing it would release all locks of this process on the file.
_lock_files: dict[Path, int | None] = {}

if sys.platform != "win32":
    import fcntl


class FolderLocator(InTreeCacheLocator):
    """Place of the files of one function: the folder that :func:`cache_folder` chooses."""

    def __init__(self, function: Callable[..., Any], source_file: str) -> None:
        super().__init__(function, source_file)
        self._cache_path = str(cache_folder(source_file).path)

    @classmethod
    def from_function(cls, function: Callable[..., Any], source_file: str) -> FolderLocator | None:
        """Return the place, or None if the source is not a file or no folder can be taken."""
        if not Path(source_file).exists() or cache_folder(source_file).path is None:
            return None
        return cls(function, source_file)


class FolderImplementation(CompileResultCacheImpl):
    """Numba's cache of compiled functions, in the folders of this package."""

    _locator_classes = [FolderLocator, IPythonCacheLocator]  # noqa: RUF012


class KernelCache(FunctionCache):
    """Cache files of one function, with a lock so that only one process compiles it."""

    _impl_class = FolderImplementation

    def __init__(self, function: Callable[..., Any], digest: Callable[[Any], str]) -> None:
        super().__init__(function)
        self.folder = folder_of(function)
        self._digest, self._stamped, self._locked = digest, False, False
        # Numba numbers the files of one function, one file for each signature. Two processes that compile at the same
        # time would choose the same number. One signature would then load the machine code of the other. The identifier
        # of the process prevents that.
        file = self._cache_file
        file._data_name_pattern = file._data_name_pattern.replace(".{number:d}.", f".{{number:d}}-{_PROCESS}.")

    def load_overload(self, sig: object, target_context: object) -> object:
        """Load machine code for a signature.

        Without any, lock the function, so that no other process compiles it at the same time.
        """
        # The digest is computed at the first call, not in the constructor: functions that this one calls may be defined
        # later in its module.
        if not self._stamped:
            self._cache_file._source_stamp, self._stamped = self._digest(self._py_func), True
        found = self._read(sig, target_context)
        if found is None and self._lock():
            found = self._read(sig, target_context)
            if found is not None:
                self.release()
        return found

    def _read(self, sig: object, target_context: object) -> object:
        """Read a file; return None for a damaged file, or for one that names modules which no longer exist."""
        try:
            _prepare_to_run(target_context)
            found = self._load_overload(sig, target_context)
            return self._read_prebuilt(sig, target_context) if found is None else found
        except Exception:  # Unpickling can raise any exception.
            return None

    def _read_prebuilt(self, sig: object, target_context: Any) -> object:
        """Read machine code beside the source, where it is not written: that of an image built by another user."""
        if self.folder.prebuilt is None:
            return None
        file = self._cache_file
        beside = IndexDataCacheFile(str(self.folder.prebuilt), self._impl.filename_base, file._source_stamp)
        data = beside.load(self._index_key(sig, target_context.codegen()))
        return None if data is None else self._impl.rebuild(target_context, data)

    def save_overload(self, sig: object, data: object) -> None:
        """Write machine code to disk, and release the lock. On a full disk the code is used without being kept."""
        try:
            with contextlib.suppress(OSError):
                try:
                    super().save_overload(sig, data)
                except Exception:  # The list of files is damaged: unpickling can raise any exception.
                    self.flush()
                    super().save_overload(sig, data)
        finally:
            self.release()

    def _lock(self) -> bool:
        """Wait while another process compiles this function; return whether this process waited.

        After a wait the caller reads the cache again, because the other process has probably written the file.
        """
        if self._locked or not self._enabled:
            return False
        waited, limit = False, time.monotonic() + LONGEST_WAIT_SECONDS
        while not self._try(lock=True):
            waited = True
            if time.monotonic() > limit:
                return True
            time.sleep(POLL_SECONDS)
        self._locked = True
        return waited

    def release(self) -> None:
        """Release the lock, so that other processes can compile this function."""
        if self._locked:
            self._locked = False
            self._try(lock=False)

    def _try(self, lock: bool) -> bool:
        """Lock or unlock the byte of the folder's lock file that belongs to this function.

        Return False if another process holds the lock, and True where the platform or file system has no locks.
        """
        file = self._lock_file()
        if file is None:
            return True
        byte = zlib.crc32(self._cache_file._index_name.encode())
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB if lock else fcntl.LOCK_UN, 1, byte)
        except BlockingIOError:
            return False
        except OSError:  # The file system has no locks.
            return True
        return True

    def _lock_file(self) -> int | None:
        folder = Path(self._cache_path)
        if folder not in _lock_files:
            _lock_files[folder] = None
            if sys.platform != "win32":
                # Without write access to the folder, nothing can be cached there, and no lock is needed.
                with contextlib.suppress(OSError):
                    self._impl.locator.ensure_cache_path()
                    _lock_files[folder] = os.open(folder / "hogwild-kernels.lock", os.O_CREAT | os.O_RDWR)
        return _lock_files[folder]


def _prepare_to_run(target_context: object) -> None:
    """Define what machine code from the disk may refer to: memory of arrays, hashes, and parts of Numba's extensions.

    ``target_context.refresh()``, which Numba calls here, imports 220 modules that only a compilation needs.
    """
    rtsys.initialize(target_context)
    entrypoints.init_all()
    importlib.import_module("numba.cpython.hashing")


Compiled = TypeVar("Compiled", "Dispatcher", "CFunc")


def folder_of(function: Callable[..., Any]) -> CacheFolder:
    """Return the folder of the machine code of a function."""
    return cache_folder(function.__code__.co_filename)


def cache_of(function: Callable[..., Any], digest: Callable[[Any], str]) -> KernelCache | NullCache:
    """Return the cache of a function, or one that keeps nothing if no folder can be taken."""
    try:
        return KernelCache(function, digest)
    except RuntimeError:  # Numba finds no folder.
        return NullCache()


def kept_on_disk(compiled: Compiled, function: Callable[..., Any], digest: Callable[[Any], str]) -> Compiled:
    """Attach a :class:`KernelCache` to a dispatcher or a C function of a Python function, and return it."""
    if compiled is function:  # With NUMBA_DISABLE_JIT the dispatcher is the plain function.
        return compiled
    cache = cache_of(function, digest)
    compile_one = compiled._compiler.compile

    def compile_and_release(*given: object) -> object:
        if not folder_of(function).usual:
            _explain_folder()
        try:
            with _no_garbage_collection():
                return compile_one(*given)
        except BaseException:
            if isinstance(cache, KernelCache):
                cache.release()
            raise

    compiled._compiler.compile = compile_and_release
    compiled._cache = cache
    return compiled


@functools.cache
def _explain_folder() -> None:
    """Print one line about an unusual folder on stderr, in the process of the user alone: workers would repeat it."""
    if multiprocessing.parent_process() is None and sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"hogwild: {cache_folder(__file__).explain()}\n")
            sys.stderr.flush()


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Disable garbage collection: a compilation allocates millions of objects that stay reachable until its end."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _passes(state: StateDict, lowering: type[NativeLowering]) -> list[Any]:
    """Return Numba's usual passes, except for the last one."""
    pipeline = DefaultPassBuilder.define_nopython_pipeline(state)
    pipeline.passes = [(lowering, why) if each is NativeLowering else (each, why) for each, why in pipeline.passes]
    pipeline._finalized = False
    pipeline.finalize()
    return [pipeline]


class PartCompiler(CompilerBase):
    """Compiler of a function that is linked into its callers."""

    def define_pipelines(self) -> list[Any]:
        """List the passes."""
        return _passes(self.state, PartLowering)


class EntryCompiler(Compiler):
    """Compiler of C functions whose arguments differ from those of the Python function."""

    # (context, library, function, environment, call_helper) -> adds the C function of a lowered one to the library.
    add_c_function: ClassVar[Callable[..., None]]

    def define_pipelines(self) -> list[Any]:
        """List the passes."""
        return _passes(self.state, EntryLowering)


@register_pass(mutates_CFG=True, analysis_only=False)
class EntryLowering(NativeLowering):
    """Lowering pass of :class:`EntryCompiler`."""

    _name = "hogwild_entry_lowering"

    def run_pass(self, state: StateDict) -> bool:
        """Lower a function, and add its C function."""
        context = state.targetctx
        # Only this thread uses the compiler, because Numba holds its global lock.
        context.create_cfunc_wrapper = partial(state.pipeline.add_c_function, context)
        try:
            done: bool = super().run_pass(state)
        finally:
            del context.create_cfunc_wrapper
        return done


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(NativeLowering):
    """Lowering pass that makes optimised LLVM code of a function, ready to be linked, and no machine code."""

    _name = "hogwild_part_lowering"

    def run_pass(self, state: StateDict) -> bool:
        """Lower a function into a library that is never loaded."""
        context = state.targetctx
        library = state.library = context.codegen().create_library(state.func_id.func_qualname)
        library._finalize_final_module = partial(_ready_to_be_linked, library)
        # Only this thread uses the compiler, because Numba holds its global lock.
        context.get_executable = _nothing_to_call
        try:
            done: bool = super().run_pass(state)
        finally:
            del context.get_executable
        return done


def _ready_to_be_linked(library: JITCodeLibrary) -> None:
    library._finalize_dynamic_globals()
    library._verify_declare_only_symbols()
    library._finalized = True


def _nothing_to_call(library: JITCodeLibrary, function: PythonFunctionDescriptor, environment: Environment) -> object:
    """Return a placeholder of a function that only other compiled functions call."""
    library._ensure_finalized()
    name = function.qualname.split(".")[-1]
    return _dynfunc.make_function(function.lookup_module(), name, "", 0, environment, (library,))
