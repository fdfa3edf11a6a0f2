"""Orders of rows that a GPU writes itself, so that none is copied."""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.data.random_order import RandomOrder, permuted_number
from hogwild.kernels import cuda_jit
from hogwild.kernels.cuda_device import to_device, whole_device
from hogwild.kernels.cuda_jit import cuda


def fill_random(order: Any, first: Any, count: Any, constants: Any) -> None:
    """Write ``count`` numbers of a random order, from the one at ``first`` on."""
    for k in range(cuda.grid(1), count, cuda.gridsize(1)):
        order[k] = permuted_number(first + k, constants)


def fill_range(order: Any, count: Any) -> None:
    """Write consecutive row numbers."""
    for k in range(cuda.grid(1), count, cuda.gridsize(1)):
        order[k] = k


class OrderBuffer:
    """Memory of a GPU for the order of one launch."""

    def __init__(self) -> None:
        self._memory: Any = None
        self._constants: Any = None

    def listed(self, order: Any) -> Any:
        """Copy a list of row numbers."""
        memory = self._room(len(order))
        if len(order):
            memory[: len(order)].copy_to_device(np.ascontiguousarray(order, np.uint32))
        return memory

    def part(self, order: Any, first: int, count: int) -> Any:
        """Return a part of an order, written by the GPU if the order is a formula."""
        if not isinstance(order, RandomOrder):
            return self.listed(order[first : first + count])
        memory = self._room(count)
        if self._constants is None:
            self._constants = to_device(order.constants)
        else:
            self._constants.copy_to_device(order.constants)
        cuda_jit.kernel(fill_random)[whole_device()](memory, first, count, self._constants)
        return memory

    def numbered(self, count: int) -> Any:
        """Return the numbers of all rows in stored order."""
        memory = self._room(count)
        cuda_jit.kernel(fill_range)[whole_device()](memory, count)
        return memory

    def _room(self, count: int) -> Any:
        if self._memory is None or len(self._memory) < count:
            self._memory = cuda.device_array(max(1, count), np.uint32)
        return self._memory
