"""Order of the rows, step sizes and sums of a launch, in the memory of a GPU.

A copy or a launch takes tens of microseconds, however small. So the GPU writes random orders itself, and gets all
numbers of a launch by one copy.
"""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.data.random_order import CONSTANTS, RandomOrder, permuted_number
from hogwild.kernels import cuda_jit
from hogwild.kernels.cuda_device import device_array, to_device, whole_device
from hogwild.kernels.cuda_jit import cuda

STEPS = 16  # step sizes of a launch


def fill_random(order: Any, first: Any, count: Any, constants: Any, sums: Any) -> None:
    """Write ``count`` numbers of a random order, from the one at ``first`` on, and zeros to ``sums``."""
    for k in range(cuda.grid(1), len(sums), cuda.gridsize(1)):
        sums[k] = 0.0
    for k in range(cuda.grid(1), count, cuda.gridsize(1)):
        order[k] = permuted_number(first + k, constants)


def fill_range(order: Any, count: Any, sums: Any) -> None:
    """Write consecutive row numbers, and zeros to ``sums``."""
    for k in range(cuda.grid(1), len(sums), cuda.gridsize(1)):
        sums[k] = 0.0
    for k in range(cuda.grid(1), count, cuda.gridsize(1)):
        order[k] = k


class LaunchBuffer:
    """Memory of a GPU for the order, the step sizes and the sums of one launch."""

    def __init__(self, n_sums: int, rows: int) -> None:
        self._numbers = np.zeros(CONSTANTS + STEPS // 2, np.uint64)
        self._there = to_device(self._numbers)
        self._order = device_array(max(1, rows), np.uint32)
        self._fetched = np.zeros(n_sums)
        self.steps = self._there[CONSTANTS:].view(np.float32)
        self.sums = to_device(self._fetched)

    def random(self, order: RandomOrder, first: int, count: int, steps: Any) -> Any:
        """Return a part of a random order; the step sizes are there, and the sums are zero."""
        memory = self._room(count)
        self._numbers[:CONSTANTS], self._numbers[CONSTANTS:].view(np.float32)[:] = order.constants, steps
        self._there.copy_to_device(self._numbers)
        cuda_jit.kernel(fill_random)[whole_device()](memory, first, count, self._there, self.sums)
        return memory

    def listed(self, order: Any, steps: Any = 0.0) -> Any:
        """Return a list of row numbers; the step sizes are there, and the sums are zero."""
        self._numbers[CONSTANTS:].view(np.float32)[:] = steps
        self._there.copy_to_device(self._numbers)
        self.clear()
        return self.copied(order)

    def copied(self, order: Any) -> Any:
        """Return a list of row numbers."""
        memory = self._room(len(order))
        if len(order):
            memory[: len(order)].copy_to_device(np.ascontiguousarray(order, np.uint32))
        return memory

    def numbered(self, count: int) -> Any:
        """Return the numbers of all rows in stored order; the sums are zero."""
        memory = self._room(count)
        cuda_jit.kernel(fill_range)[whole_device()](memory, count, self.sums)
        return memory

    def clear(self) -> None:
        """Set the sums to zero."""
        cuda_jit.kernel(fill_range)[whole_device()](self._order, 0, self.sums)

    def wait(self) -> None:
        """Wait for all launches."""
        cuda.synchronize()

    def fetched(self) -> Any:
        """Wait for all launches, and return the sums."""
        self.sums.copy_to_host(self._fetched)
        return self._fetched.copy()

    def _room(self, count: int) -> Any:
        if len(self._order) < count:
            self._order = device_array(count, np.uint32)
        return self._order
