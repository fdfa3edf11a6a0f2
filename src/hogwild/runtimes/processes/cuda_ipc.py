"""GPU memory that processes share, by the IPC handles of the CUDA driver.

PyTorch shares GPU memory with a reference count in a file in ``/dev/shm``. That file remains when a process is
killed. Here the process that allocated the memory frees it, after the other processes have terminated.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch

from hogwild.errors import HogwildError

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


def _call(name: str, *given: Any) -> None:
    status = getattr(ctypes.CDLL("libcuda.so.1"), name)(*given)
    if status:
        raise HogwildError(
            f"The GPU's driver refused to share memory between processes ({name} gave {status}). In a container, "
            "processes must see each other's memory (--ipc=host); or train on the CPU."
        )
