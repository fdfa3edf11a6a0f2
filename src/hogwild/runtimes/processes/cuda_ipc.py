"""Memory of a GPU that processes have in common, by the driver's own handles.

PyTorch's way to share such memory counts who uses it in a file in ``/dev/shm``, which stays there when a process is
killed. Here the process that allocated the memory frees it, after the others have ended.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch

from hogwild.errors import HogwildError

_LAZY_PEER_ACCESS = 1
_HANDLE_BYTES = 64


class _Handle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_byte * _HANDLE_BYTES),)


class DeviceMemory:
    """Bytes on a GPU, this process's own or, by a handle, another's; PyTorch takes it for an array."""

    def __init__(self, size: int, device: str, handle: bytes | None = None) -> None:
        self.size, self.device, self._owned = size, device, handle is None
        pointer = ctypes.c_uint64()
        with torch.cuda.device(device):
            torch.zeros(1, device=device)  # the device's context exists from now on, and is this thread's
            if handle is None:
                _call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
            else:
                opened = _Handle.from_buffer_copy(handle)
                _call("cuIpcOpenMemHandle_v2", ctypes.byref(pointer), opened, ctypes.c_uint(_LAZY_PEER_ACCESS))
        self._pointer = pointer.value

    @property
    def handle(self) -> bytes:
        """What another process needs to have the same memory."""
        found = _Handle()
        with torch.cuda.device(self.device):
            _call("cuIpcGetMemHandle", ctypes.byref(found), ctypes.c_uint64(self._pointer))
        return bytes(found)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": (self.size,), "typestr": "|u1", "data": (self._pointer, False), "version": 2}

    def tensor(self) -> torch.Tensor:
        """All of it; whoever has a tensor of it keeps it alive."""
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
