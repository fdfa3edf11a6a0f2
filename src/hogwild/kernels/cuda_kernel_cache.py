"""Compiled kernels of GPUs on disk: a first fit on a GPU took as long as compiling its kernels, in every process.

Numba's own cache of GPU kernels compares the source file in which a kernel is written. Kernels here are templates,
into which losses and rules are bound. So a file is named by a digest of all the code of a kernel, the types of its
arguments, the kind of GPU and the versions of what compiles.
"""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

import contextlib
import hashlib
import pickle
from importlib import metadata
from pathlib import Path
from typing import Any

import numba
import numpy as np

from hogwild.cache_folder import cache_folder
from hogwild.files import write_file
from hogwild.jit import Function, digest_of
from hogwild.lazy import cached_property

CHECKED = hashlib.sha256().digest_size  # Bytes at the start of a file: the digest of the rest.


def kept_on_disk(kernel: Any, **options: Any) -> Any:
    """Attach a cache to a GPU kernel that Numba compiles with the given options, and return it."""
    folder = cache_folder(kernel.py_func.__code__.co_filename).path
    if folder is not None:
        kernel._cache = CudaKernelCache(folder, kernel.py_func, **options)
    return kernel


class CudaKernelCache:
    """Files of one GPU kernel. Numba's dispatcher asks it before it compiles, and gives it what it has compiled."""

    def __init__(self, folder: Path, function: Function, **options: Any) -> None:
        self.cache_path = str(folder)
        self._folder, self._function, self._options = folder, function, options

    def load_overload(self, signature: object, target: Any) -> Any:
        """Return the kernel for the types of arguments, or None if there is no file, or a damaged one."""
        from numba.cuda.dispatcher import _Kernel

        try:
            content = self._file(signature, target.codegen()).read_bytes()
            if hashlib.sha256(content[CHECKED:]).digest() != content[:CHECKED]:
                return None
            return _Kernel._rebuild(**pickle.loads(content[CHECKED:]))
        except Exception:  # Unpickling can raise any exception.
            return None

    def save_overload(self, signature: object, kernel: Any) -> None:
        """Write a compiled kernel to its file. Where that cannot be done, as on a full disk, it is used unkept."""
        # Kernels that are linked with other files cannot be pickled: a RuntimeError.
        with contextlib.suppress(OSError, RuntimeError, pickle.PicklingError, ImportError):
            from numba.cuda.serialize import dumps

            states = kernel._reduce_states()
            # Newer versions compile some kernels for the number of threads of one launch.
            if not states.get("launch_config_sensitive"):
                content = dumps(states)
                write_file(self._file(signature, kernel.codegen), hashlib.sha256(content).digest() + content)

    def flush(self) -> None:
        """Remove all files of this kernel."""
        for file in self._folder.glob(f"{self._stem}-*.nbc"):
            file.unlink(missing_ok=True)

    def _file(self, signature: object, codegen: Any) -> Path:
        what = repr((signature, codegen.magic_tuple(), VERSIONS))
        return self._folder / f"{self._stem}-{hashlib.sha256(what.encode()).hexdigest()[:16]}.nbc"

    @cached_property
    def _stem(self) -> str:
        code = hashlib.sha256(f"{digest_of(self._function)}{sorted(self._options.items())}".encode())
        return f"cuda-{self._function.__name__}-{code.hexdigest()[:16]}"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


VERSIONS = (_version("numba-cuda"), _version("llvmlite"), numba.__version__, np.__version__)
