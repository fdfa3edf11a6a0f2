"""GPU kernels of :mod:`hogwild.kernels.embedding`, with one thread block for each sample of the batch.

The threads of a block form a rectangle. Each of its ``lanes`` handles a column, so that a row is read in one piece.
Each of its ``groups`` handles a share of the sample's rows. Kernels update rows by atomic additions, so no update is
lost and no thread waits. A kernel skips an index that no row has; :func:`gather` records it.
"""

# mypy: disable-error-code="name-defined, attr-defined, no-untyped-call"
# ruff: noqa: F821  (a kernel's parts are bound when it is specialised)

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from hogwild.jit import bind
from hogwild.kernels.cuda_jit import compiled, cuda, simulated
from hogwild.kernels.embedding import EPSILON

THREADS = 256  # Number of threads of a block.
SMALL = 32  # Number of threads of a warp.


def gather(table: Any, indices: Any, offsets: Any, values: Any, out: Any, fault: Any) -> None:
    """Write the weighted sum of its rows for each sample.

    Record in ``fault`` 1 + the position of an index without a row.
    """
    partial = cuda.shared.array(256, np.float32)
    sample, lane, group = cuda.blockIdx.x, cuda.threadIdx.x, cuda.threadIdx.y
    lanes, groups = cuda.blockDim.x, cuda.blockDim.y
    rows, width = table.shape
    for begin in range(0, width, lanes):
        column = begin + lane
        total = np.float32(0)
        if column < width:
            for at in range(offsets[sample] + group, offsets[sample + 1], groups):
                row = indices[at]
                if 0 <= row < rows:
                    total += weight_of(values, at) * table[row, column]
                else:
                    fault[0] = at + 1
        partial[group * lanes + lane] = total
        cuda.syncthreads()
        if group == 0 and column < width:
            for other in range(1, groups):
                total += partial[other * lanes + lane]
            out[sample, column] = total
        cuda.syncthreads()


def scatter(table: Any, indices: Any, offsets: Any, values: Any, gradient: Any, rate: Any) -> None:
    """Move every row of every sample against the sample's gradient."""
    sample, lane, group = cuda.blockIdx.x, cuda.threadIdx.x, cuda.threadIdx.y
    lanes, groups = cuda.blockDim.x, cuda.blockDim.y
    rows, width = table.shape
    for column in range(lane, width, lanes):
        move = -rate[0] * gradient[sample, column]
        for at in range(offsets[sample] + group, offsets[sample + 1], groups):
            row = indices[at]
            if 0 <= row < rows:
                cuda.atomic.add(table, (row, column), weight_of(values, at) * move)


def pace(squares: Any, indices: Any, offsets: Any, values: Any, square: Any, rate: Any, steps: Any) -> None:
    """Add the mean square of each gradient to its row's accumulator, and compute the step sizes of AdaGrad."""
    sample = cuda.blockIdx.x
    for at in range(offsets[sample] + cuda.threadIdx.x, offsets[sample + 1], cuda.blockDim.x):
        row, weight = indices[at], weight_of(values, at)
        if 0 <= row < squares.shape[0]:
            mine = weight * weight * square[sample]
            before = cuda.atomic.add(squares, row, mine)
            steps[at] = rate[0] * weight / (np.float32(math.sqrt(before + mine)) + EPSILON)


def one(values: Any, at: Any) -> Any:
    """Return 1, the value of every non-zero of binary data, for which no values are stored."""
    return np.float32(1)


def stored(values: Any, at: Any) -> Any:
    """Return the stored value of a non-zero."""
    return values[at]


@functools.cache
def kernel(template: Any, binary: bool) -> Any:
    """Return one of the kernels of this module; its first launch compiles it."""
    return compiled(bind(template, weight_of=cuda.jit(device=True)(one if binary else stored)))


@functools.lru_cache(1024)
def launcher(template: Any, binary: bool, samples: int, threads: tuple[int, ...], handle: int) -> Any:
    """Return a kernel configured for a number of samples and for the PyTorch stream with this handle.

    Configurations are cached, since making one takes as long as running the kernel.
    """
    return kernel(template, binary)[samples, threads, stream(handle)]


def block(width: int) -> tuple[int, int]:
    """Return the numbers of lanes and of groups that suit rows of this width.

    >>> block(64), block(10), block(1000)
    ((64, 4), (32, 8), (256, 1))
    """
    lanes = min(THREADS, -(-width // SMALL) * SMALL)
    return lanes, THREADS // lanes


def array(tensor: Any) -> Any:
    """Return a Numba array that shares a tensor's memory; under Numba's simulator, that is main memory."""
    if simulated():
        return tensor.detach().numpy()
    return _view(tensor.data_ptr(), tuple(tensor.shape), _TYPES[str(tensor.dtype)])


_TYPES = {"torch.float32": "<f4", "torch.int32": "<i4", "torch.int64": "<i8"}


class Memory:
    """GPU memory in the form that Numba accepts (``__cuda_array_interface__``)."""

    def __init__(self, address: int, shape: tuple[int, ...], kind: str) -> None:
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": kind, "data": (address, False), "version": 2, "strides": None,
        }  # fmt: skip


@functools.lru_cache(4096)
def _view(address: int, shape: tuple[int, ...], kind: str) -> Any:
    """Return a cached view of GPU memory.

    A view depends only on address, shape and type, whichever tensor owns the memory. Making one takes longer than a
    kernel.
    """
    return cuda.as_cuda_array(Memory(address, shape, kind), sync=False)


def stream(handle: int) -> Any:
    """Return PyTorch's stream as a Numba stream."""
    return 0 if simulated() else cuda.external_stream(handle)
