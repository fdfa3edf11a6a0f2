"""Memory that processes share: blocks of main memory, and memory of a GPU.

PyTorch shares GPU memory with a reference count in a file in ``/dev/shm``. That file remains when a process is
killed. Here the process that allocated the memory frees it, after the other processes have terminated.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray

from hogwild.errors import HogwildError, ParameterError
from hogwild.files import format_size
from hogwild.machine import swap_bytes, this_machine

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
        self.fd = _anonymous_file(self.size) if fd is None else fd
        self.bytes = mmap.mmap(self.fd, self.size)

    def array(self, dtype: DTypeLike, shape: tuple[int, ...], offset: int = 0) -> NDArray[Any]:
        """Return an array that is a view of the block, from ``offset`` bytes on."""
        count = int(np.prod(shape, dtype=np.int64))
        return np.frombuffer(self.bytes, dtype, count, offset).reshape(shape)

    def close(self) -> None:
        """Close the file descriptor; views of the block stay valid."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def check_space(size: int, what: str) -> None:
    """Raise :class:`ParameterError` if ``size`` bytes exceed the usable memory and the swap space.

    Otherwise the system would kill a process later, when the memory runs out.
    """
    room = this_machine().usable_memory + swap_bytes()
    if size > room:
        raise ParameterError(
            f"{what} takes {format_size(size)} of shared memory, and {format_size(room)} is free. "
            "Use a smaller model, an optimiser with less state, or a machine with more memory."
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


def _anonymous_file(size: int) -> int:
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("hogwild")
    else:
        # Systems without memfd_create, such as macOS, get a temporary file without a name.
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, size)
    return fd


_LAZY_PEER_ACCESS = 1  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS of the CUDA driver
_HANDLE_BYTES = 64  # size of CUipcMemHandle in bytes


class _Handle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_byte * _HANDLE_BYTES),)


class DeviceMemory:
    """Block of GPU memory, allocated by this process or opened from another process's handle.

    PyTorch reads the block as an array of bytes, through ``__cuda_array_interface__``.
    """

    def __init__(self, size: int, device: str, handle: bytes | None = None) -> None:
        self.size, self.device, self._owned = size, device, handle is None
        pointer = ctypes.c_uint64()
        with torch.cuda.device(device):
            # This allocation creates the device's CUDA context and makes it current in this thread.
            torch.zeros(1, device=device)
            if handle is None:
                _call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
            else:
                opened = _Handle.from_buffer_copy(handle)
                _call("cuIpcOpenMemHandle_v2", ctypes.byref(pointer), opened, ctypes.c_uint(_LAZY_PEER_ACCESS))
        self._pointer = pointer.value

    @property
    def handle(self) -> bytes:
        """The IPC handle with which another process opens the same memory."""
        found = _Handle()
        with torch.cuda.device(self.device):
            _call("cuIpcGetMemHandle", ctypes.byref(found), ctypes.c_uint64(self._pointer))
        return bytes(found)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": (self.size,), "typestr": "|u1", "data": (self._pointer, False), "version": 2}

    def tensor(self) -> torch.Tensor:
        """Return the whole block as a tensor of bytes; the tensor keeps the block allocated."""
        return torch.as_tensor(self, device=self.device)

    def __del__(self) -> None:
        if self._owned and hasattr(self, "_pointer"):
            ctypes.CDLL("libcuda.so.1").cuMemFree_v2(ctypes.c_uint64(self._pointer))


def _call(name: str, *given: object) -> None:
    status = getattr(ctypes.CDLL("libcuda.so.1"), name)(*given)
    if status:
        raise HogwildError(
            f"The GPU's driver refused to share memory between processes ({name} gave {status}). In a container, "
            "processes must see each other's memory (--ipc=host); or train on the CPU."
        )
