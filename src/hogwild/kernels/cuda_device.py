"""Memory of a GPU: rows, parameters, and the number of threads of a launch."""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from hogwild.data.csr import CSRRows
from hogwild.errors import HogwildError
from hogwild.kernels.cuda_jit import cuda, simulated
from hogwild.kernels.cuda_upload import DIRECT, staging

THREADS = 512  # threads of a block
# One block for each multiprocessor: more rows in flight make less progress an epoch. And no more rows in flight than
# one in this number of rows.
ROWS_EACH = 256
SIMULATED = 2, 2  # blocks and threads in Numba's simulator, whose threads are slow


NO_INDICES, NO_NUMBERS = np.zeros(1, np.uint32), np.ones(1, np.float32)


class DeviceError(HogwildError):
    """GPU that is absent or too small, or a driver that does not work."""


# Errors of Numba and of the packages below it, by their names: some have no public class.
_DRIVER_ERRORS = {"CUDAError", "CudaAPIError", "CudaDriverError", "CudaSupportError", "LinkerError"}


class driver_errors(ContextDecorator):  # noqa: N801  (used as a decorator)
    """Turn errors of the driver into ``DeviceError``: a context that finds no memory, a device that was lost.

    >>> with driver_errors():
    ...     raise ValueError("other errors stay")
    Traceback (most recent call last):
    ValueError: other errors stay
    """

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Raise ``DeviceError`` instead of an error of the driver."""
        if kind is None or kind.__name__ not in _DRIVER_ERRORS:
            return
        reason = " ".join(str(error).split()).rstrip(".")
        full = "OUT_OF_MEMORY" in reason
        remedy = "'nvidia-smi' lists the programs that use it." if full else "'hogwild doctor' tells what works."
        what = "The GPU's memory is full" if full else "The GPU's driver could not go on"
        raise DeviceError(f"{what} ({reason}). {remedy}") from None


def check_device() -> None:
    """Raise ``DeviceError`` if there is no GPU that kernels can run on."""
    if not simulated() and not cuda.is_available():
        raise DeviceError(
            "There is no GPU here that CUDA can use. 'hogwild doctor' tells what is missing. Use runtime=Threads(), or "
            "device='cpu' of an estimator."
        )


@cache
def _multiprocessors() -> int:
    return int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


def launch_size(lanes: int, rows: int, most: int = 1) -> tuple[int, int]:
    """Return the number of blocks, and of threads of each, for a data set of this number of rows.

    ``most`` is the largest number of blocks of a multiprocessor.
    """
    if simulated():
        return SIMULATED
    return max(1, min(most * _multiprocessors(), rows * lanes // (ROWS_EACH * THREADS))), THREADS


def spread_size(lanes: int, rows: int, most: int, threads: int) -> tuple[int, int]:
    """Return the number of blocks, and of threads of each, for this number of rows in flight, spread over the GPU.

    ``most`` is the largest number of rows of a multiprocessor.
    """
    if simulated():
        return SIMULATED
    return -(-max(1, min(rows, most * _multiprocessors())) * lanes // threads), threads


def whole_device() -> tuple[int, int]:
    """Return the number of blocks and threads of a launch without dependencies."""
    return SIMULATED if simulated() else (4 * _multiprocessors(), THREADS)


def in_small_blocks(blocks: int, threads: int) -> tuple[int, int]:
    """Return the size of a launch of as many threads in blocks of half the size, with registers for all they can use.

    >>> in_small_blocks(3, 512)
    (6, 256)
    """
    return (2 * blocks, threads // 2) if threads > 1 else (blocks, threads)


def to_device(array: Any) -> Any:
    """Copy an array to the GPU.

    Raises
    ------
    DeviceError
        If the GPU's memory is too small.
    """
    array = np.ascontiguousarray(array)
    small = simulated() or array.nbytes < DIRECT
    return _unless_full(array.nbytes, lambda: cuda.to_device(array) if small else staging().copy(array))


def device_array(shape: int | tuple[int, ...], kind: Any) -> Any:
    """Return an array in the memory of the GPU, whose contents are arbitrary.

    Raises
    ------
    DeviceError
        If the GPU's memory is too small.
    """
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    return _unless_full(size, lambda: cuda.device_array(shape, kind))


def _unless_full(size: int, make: Callable[[], Any]) -> Any:
    """Return what a function makes, and raise ``DeviceError`` if the GPU has too little memory."""
    if simulated():
        return make()
    from numba.cuda.cudadrv.driver import CudaAPIError

    try:
        return make()
    except (CudaAPIError, MemoryError) as error:
        free, total = cuda.current_context().get_memory_info()
        raise DeviceError(
            f"An array of {size / 2**30:.2f} GiB does not fit into the GPU's memory: {free / 2**30:.1f} of "
            f"{total / 2**30:.1f} GiB are free ({error})."
        ) from None


def to_host(there: Any, array: Any) -> None:
    """Copy an array from the GPU to a contiguous one of the same shape."""
    if simulated() or array.nbytes < DIRECT:
        there.copy_to_host(array)
    else:
        staging().fetch(there, array)


Copy = Callable[[Any, Callable[[], Any]], Any]
"""Function of an array on the host and of a function that returns it in the form that the GPU gets."""


def copy_anew(array: Any, make: Callable[[], Any]) -> Any:
    """Copy an array to the GPU, whether it is there or not."""
    return to_device(make())


class CopiedArrays:
    """Arrays that are in the memory of the GPU, by their place in the memory of the host."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, tuple[int, ...], str], tuple[Any, Any]] = {}

    def __len__(self) -> int:
        return len(self._found)

    def __call__(self, array: Any, make: Callable[[], Any]) -> Any:
        """Return an array in the memory of the GPU, and copy it there if it is not there yet."""
        key = array.ctypes.data, array.shape, array.dtype.str
        if key not in self._found:
            self._found[key] = array, to_device(make())  # The array is kept, so that its memory has no other use.
        return self._found[key][1]


@dataclass(frozen=True, slots=True, eq=False)
class DeviceRows:
    """Rows in the memory of the GPU."""

    indptr: Any
    indices: Any
    values: Any
    labels: Any
    weights: Any
    weighted: bool  # whether rows have weights

    @classmethod
    def of(cls, rows: CSRRows, copied: Copy) -> DeviceRows:
        """Copy rows to the GPU; ``copied`` remembers arrays that are there."""
        start, stop = int(rows.indptr[0]), int(rows.indptr[-1])
        indices = rows.indices[start:stop] if rows.indices.size else NO_INDICES
        values = rows.values[start:stop] if rows.values.size else NO_NUMBERS
        weights = rows.weights if rows.weights.size else NO_NUMBERS
        # Signed indices are faster to add to an address.
        signed = not simulated() and rows.features < 2**31 and indices.dtype == np.uint32
        return cls(
            copied(rows.indptr, lambda: rows.indptr - start),
            copied(indices, lambda: indices.view(np.int32) if signed else indices),
            copied(values, partial(as_single, values)),
            copied(rows.labels, partial(as_single, rows.labels)),
            copied(weights, partial(as_single, weights)),
            bool(rows.weights.size),
        )

    @property
    def arrays(self) -> tuple[Any, ...]:
        """Offsets, indices, values, labels and weights."""
        return self.indptr, self.indices, self.values, self.labels, self.weights


def as_single(array: Any) -> Any:
    """Return an array in single precision, not copied if it is."""
    return array.astype(np.float32, copy=False)
