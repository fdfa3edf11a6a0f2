"""Copies of pieces of rows to a GPU during training: entries by its copy engine, and what a row has by a kernel."""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hogwild.kernels import cuda_jit
from hogwild.kernels.cuda_device import DeviceRows, to_device
from hogwild.kernels.cuda_jit import cuda, simulated

ROW, ENTRY, TO_ROW, TO_ENTRY = range(4)  # columns of a list of pieces: where a piece starts, and where its copy does
THREADS = 256  # of a piece
WEIGHTED = True  # Name to bind: whether rows have weights.
_NON_BLOCKING = 1  # flag of the driver: a stream beside which kernels of the default stream run


class CopyStream:
    """Copies that run beside kernels."""

    def __init__(self) -> None:
        self._handle = None if simulated() else _driver().cuStreamCreate(_NON_BLOCKING)

    def copy(self, source: Any, target: Any, pieces: Sequence[Sequence[int]]) -> None:
        """Begin to copy pieces of an array, each of which is (its start, the start of its copy, its length)."""
        if simulated():
            for start, place, length in pieces:
                target[place : place + length] = source[start : start + length]
            return
        size, begin, to = source.dtype.itemsize, _address(source), _address(target)
        copy, handle = _driver().cuMemcpyAsync, self._handle
        for start, place, length in pieces:
            copy(to + place * size, begin + start * size, length * size, handle)

    def wait(self) -> None:
        """Wait for all copies."""
        if not simulated():
            _driver().cuStreamSynchronize(self._handle)

    def close(self) -> None:
        """Wait for all copies, and give the stream back."""
        self.wait()
        if not simulated():
            _driver().cuStreamDestroy(self._handle)


def _driver() -> Any:
    from numba.cuda.cudadrv.driver import driver

    return driver


def _address(array: Any) -> int:
    return int(array.__cuda_array_interface__["data"][0])


def copy_row_parts(
    indptr: Any, labels: Any, weights: Any, pieces: Any, to_indptr: Any, to_labels: Any, to_weights: Any
) -> None:
    """Copy offsets, labels and weights of pieces of rows.

    The line after the last piece of ``pieces`` has the number of all rows and of all entries.
    """
    piece, threads = cuda.blockIdx.x, cuda.blockDim.x
    row, entry = pieces[piece, ROW], pieces[piece, ENTRY]
    to_row, to_entry = pieces[piece, TO_ROW], pieces[piece, TO_ENTRY]
    rows = pieces[piece + 1, TO_ROW] - to_row
    for k in range(cuda.threadIdx.x, rows, threads):
        to_indptr[to_row + k] = indptr[row + k] - entry + to_entry
        to_labels[to_row + k] = labels[row + k]
        if WEIGHTED:
            to_weights[to_row + k] = weights[row + k]
    if piece == cuda.gridDim.x - 1 and cuda.threadIdx.x == 0:
        to_indptr[to_row + rows] = pieces[piece + 1, TO_ENTRY]


def copy_rows(source: DeviceRows, pieces: Any, target: DeviceRows) -> None:
    """Copy all but the entries of pieces of rows, of which ``pieces`` has a line each and one line more."""
    kernel = cuda_jit.kernel(copy_row_parts, WEIGHTED=source.weighted)
    kernel[len(pieces) - 1, 1 if simulated() else THREADS](
        source.indptr, source.labels, source.weights, to_device(pieces), target.indptr, target.labels, target.weights
    )
