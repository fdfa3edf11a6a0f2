"""Anonymous shared memory of processes: the system frees it when the last process that has it terminates."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.errors import ParameterError
from hogwild.files import format_size
from hogwild.machine import this_machine

ALIGNED = 64  # alignment in bytes: one cache line


class SharedBlock:
    """Block of shared memory, which processes open by a file descriptor.

    The block may be as large as the memory, while containers often limit ``/dev/shm`` to 64 MiB. A killed process
    leaves no file that has to be removed.

    >>> block = SharedBlock(100)
    >>> block.array(np.int32, (3,))[:] = 7
    >>> SharedBlock(100, os.dup(block.fd)).array(np.int32, (3,))
    array([7, 7, 7], dtype=int32)
    """

    def __init__(self, size: int, fd: int | None = None) -> None:
        self.size = max(ALIGNED, size)
        self.fd = _nameless(self.size) if fd is None else fd
        self.bytes = mmap.mmap(self.fd, self.size)

    def array(self, dtype: Any, shape: tuple[int, ...], offset: int = 0) -> NDArray[Any]:
        """Return an array that is a view of the block, from ``offset`` bytes on."""
        count = int(np.prod(shape, dtype=np.int64))
        return np.frombuffer(self.bytes, dtype, count, offset).reshape(shape)

    def close(self) -> None:
        """Close the file descriptor; views of the block stay valid."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def check_space(size: int, what: str) -> None:
    """Raise :class:`ParameterError` if ``size`` bytes exceed the usable memory.

    Otherwise the system would kill a process later, when the memory runs out.
    """
    room = this_machine().usable_memory
    if size > room:
        raise ParameterError(
            f"{what} takes {format_size(size)} of shared memory, and {format_size(room)} is free. "
            "Use a smaller model, an optimiser that remembers less, or a machine with more memory."
        )


def offsets(sizes: Iterable[int]) -> tuple[list[int], int]:
    """Return the offsets of consecutive parts of the given sizes, and their total size, in bytes.

    Each part begins on a new cache line.

    >>> offsets([10, 64, 1])
    ([0, 64, 128], 192)
    """
    found, end = [], 0
    for size in sizes:
        found.append(end)
        end += -(-size // ALIGNED) * ALIGNED
    return found, end


def _nameless(size: int) -> int:
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("hogwild")
    else:
        # Systems without memfd_create, such as macOS, get a temporary file without a name.
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, size)
    return fd
