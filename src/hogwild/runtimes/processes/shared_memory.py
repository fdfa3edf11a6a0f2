"""Memory that processes have in common. It has no name: when the last process that has it ends, it is gone."""

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

ALIGNED = 64  # bytes: a cache line


class SharedBlock:
    """A piece of shared memory, known to processes by the number of an open file.

    Unlike ``/dev/shm``, which containers often limit to 64 MiB, it may be as large as memory is, and nothing has to be
    cleaned up after a process that was killed.

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
        """A view of a part of it."""
        count = int(np.prod(shape, dtype=np.int64))
        return np.frombuffer(self.bytes, dtype, count, offset).reshape(shape)

    def close(self) -> None:
        """Give back the file; views stay valid as long as anybody has one."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def check_space(size: int, what: str) -> None:
    """Refuse what does not fit, instead of being killed for it later."""
    room = this_machine().usable_memory
    if size > room:
        raise ParameterError(
            f"{what} takes {format_size(size)} of shared memory, and {format_size(room)} is free. "
            "Use a smaller model, an optimiser that remembers less, or a machine with more memory."
        )


def offsets(sizes: Iterable[int]) -> tuple[list[int], int]:
    """Where things of these sizes begin, each on a cache line of its own, and how much they take together.

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
        with tempfile.TemporaryFile() as file:  # where there is nothing better: a file without a name
            fd = os.dup(file.fileno())
    os.ftruncate(fd, size)
    return fd
