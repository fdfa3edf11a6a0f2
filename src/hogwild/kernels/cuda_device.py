"""Memory of a GPU: rows, parameters, and the number of threads of a launch."""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from hogwild.data.csr import CSRRows
from hogwild.errors import HogwildError
from hogwild.kernels.cuda_jit import cuda, simulated

THREADS = 512  # threads of a block
# One block for each multiprocessor: more rows in flight make less progress an epoch. And no more rows in flight than
# one in this number of rows.
ROWS_EACH = 256
SIMULATED = 2, 2  # blocks and threads in Numba's simulator, whose threads are slow


class DeviceError(HogwildError):
    """GPU that is absent or too small, or a driver that does not work."""


def check_device() -> None:
    """Raise ``DeviceError`` if there is no GPU that kernels can run on."""
    if not simulated() and not cuda.is_available():
        raise DeviceError(
            "There is no GPU here that CUDA can use. 'hogwild doctor' tells what is missing. Use runtime=Threads()."
        )


@cache
def _multiprocessors() -> int:
    return int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


def launch_size(lanes: int, rows: int) -> tuple[int, int]:
    """Return the number of blocks, and of threads of each, for a data set of this number of rows."""
    if simulated():
        return SIMULATED
    return max(1, min(_multiprocessors(), rows * lanes // (ROWS_EACH * THREADS))), THREADS


def whole_device() -> tuple[int, int]:
    """Return the number of blocks and threads of a launch without dependencies."""
    return SIMULATED if simulated() else (2 * _multiprocessors(), THREADS)


def to_device(array: Any) -> Any:
    """Copy an array to the GPU.

    Raises
    ------
    DeviceError
        If the GPU's memory is too small.
    """
    if simulated():
        return cuda.to_device(np.ascontiguousarray(array))
    from numba.cuda.cudadrv.driver import CudaAPIError

    try:
        return cuda.to_device(np.ascontiguousarray(array))
    except (CudaAPIError, MemoryError) as error:
        free, total = cuda.current_context().get_memory_info()
        raise DeviceError(
            f"An array of {array.nbytes / 2**30:.2f} GiB does not fit into the GPU's memory: {free / 2**30:.1f} of "
            f"{total / 2**30:.1f} GiB are free ({error})."
        ) from None


@dataclass(frozen=True, slots=True, eq=False)
class DeviceRows:
    """Rows in the memory of the GPU."""

    indptr: Any
    indices: Any
    values: Any
    labels: Any
    weights: Any
    weighted: bool  # whether rows have weights
    mean_length: float

    @classmethod
    def of(cls, rows: CSRRows) -> DeviceRows:
        """Copy rows to the GPU."""
        start, stop = int(rows.indptr[0]), int(rows.indptr[-1])
        small = stop - start < 2**31
        indptr = (rows.indptr - start).astype(np.int32 if small else np.int64)
        indices = rows.indices[start:stop] if rows.indices.size else np.zeros(1, np.uint32)
        values = rows.values[start:stop].astype(np.float32, copy=False) if rows.values.size else np.ones(1, np.float32)
        weights = rows.weights.astype(np.float32, copy=False) if rows.weights.size else np.ones(1, np.float32)
        if not simulated() and rows.features < 2**31:
            indices = indices.view(np.int32) if indices.dtype == np.uint32 else indices
        return cls(
            to_device(indptr), to_device(indices), to_device(values),
            to_device(rows.labels.astype(np.float32, copy=False)), to_device(weights),
            bool(rows.weights.size), (stop - start) / max(1, len(rows)),
        )  # fmt: skip

    @property
    def arrays(self) -> tuple[Any, ...]:
        """Offsets, indices, values, labels and weights."""
        return self.indptr, self.indices, self.values, self.labels, self.weights
