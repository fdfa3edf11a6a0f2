"""Rows in the memory of the host that kernels read over the bus, because they do not fit into the memory of a GPU.

Pinned memory of the host can be mapped into the address space of a GPU. Its copy engine reads such memory at the rate
of the bus (:mod:`hogwild.runtimes.cuda.row_pieces`), and kernels read single rows of it.
"""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np

from hogwild.kernels.cuda_device import DeviceError, to_device
from hogwild.kernels.cuda_jit import cuda, simulated

FEW = 4  # Arrays that take at most one part in four of the room are copied.


class MappedRows:
    """Arrays of rows: small ones are copied to the GPU as long as there is room, and large ones are mapped."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._found: dict[tuple[int, tuple[int, ...], str], tuple[Any, Any]] = {}
        self._pins = ExitStack()

    def __call__(self, array: Any, make: Callable[[], Any]) -> Any:
        """Return an array that kernels can read.

        Raises
        ------
        DeviceError
            If the system does not let the memory be pinned.
        """
        key = array.ctypes.data, array.shape, array.dtype.str
        if key not in self._found:
            made = make()
            self._found[key] = (array, made), self._there(np.ascontiguousarray(made))
        return self._found[key][1]

    def close(self) -> None:
        """Unpin the memory."""
        self._found.clear()
        self._pins.close()

    def _there(self, array: Any) -> Any:
        if FEW * array.nbytes <= self._room or not array.size:
            self._room -= array.nbytes
            return to_device(array)
        if simulated():
            return cuda.to_device(array)
        from numba.cuda.cudadrv.driver import CudaAPIError

        try:
            return self._pins.enter_context(cuda.mapped(array))
        except (CudaAPIError, MemoryError) as error:
            raise DeviceError(f"The system does not let {array.nbytes} bytes of memory be pinned ({error}).") from None
