"""Sparse table in main memory, in huge pages.

Each row of a large table lies in another page. Of 4 KiB pages, the processor caches only a few thousand addresses. To
find the page takes as long as to read the row. Linux provides pages of 2 MiB, if a process requests them before the
first use of the memory.
"""

from __future__ import annotations

import ctypes
import mmap
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hogwild.errors import DataError
from hogwild.kernels import embedding
from hogwild.kernels.work_queue import Sheet
from hogwild.nn import openmp_pool

if TYPE_CHECKING:
    from hogwild.nn.sparse_mlp import Batch, SparseTable


# Minimum bytes of a table for huge pages to pay.
WORTH = 2**23
_ADVICE = getattr(mmap, "MADV_HUGEPAGE", None)


def empty(rows: int, width: int) -> Tensor:
    """Return an uninitialised table, in huge pages where the system has them.

    >>> empty(3, 2).shape
    torch.Size([3, 2])
    """
    table = torch.empty(rows, width)
    if _ADVICE is not None and table.device.type == "cpu" and table.nbytes >= WORTH:
        start = -(-table.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
        size = (table.data_ptr() + table.nbytes - start) // mmap.PAGESIZE * mmap.PAGESIZE
        # A rejected advice changes nothing.
        ctypes.CDLL(None).madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), _ADVICE)
    return table


class CPUEngine:
    """Operations on a table in main memory, by compiled loops on all of PyTorch's threads."""

    def check(self, table: SparseTable) -> None:
        """Do nothing, as every batch was checked before its use."""

    def look_up(self, table: SparseTable, batch: Batch) -> Tensor:
        """Return the weighted sum of each sample's rows, after a check of every index."""
        offsets, (rows, width) = batch.offsets.long(), table.weight.shape
        counted = offsets.numpy()
        _check(batch.indices.numpy(), counted, rows)
        out = torch.empty(len(counted) - 1, width)
        threads = openmp_pool.threads_for(len(batch.indices) * width)
        cuts = openmp_pool.cuts(counted, threads)
        sheet = _sheet(table, batch, offsets, out, cuts)
        openmp_pool.run(embedding.lookup_kernel(*_kind(table, batch)), sheet, threads)
        return out

    def descend(self, table: SparseTable, batch: Batch, gradient: Tensor) -> None:
        """Move the rows of all samples against their gradient, after another check of the batch.

        A thread has its own rows.
        """
        offsets, nonzeros = batch.offsets.long(), len(batch.indices)
        _check(batch.indices.numpy(), offsets.numpy(), len(table.weight))
        threads = openmp_pool.threads_for(nonzeros * gradient.shape[1])
        cuts = openmp_pool.shares(embedding.SLOTS, threads)
        sheet = _sheet(table, batch, offsets, gradient, cuts)
        sheet.rate, sheet.room = float(table.rate), nonzeros
        sizes = [threads * len(offsets) * 8, threads * nonzeros * batch.indices.itemsize, threads * nonzeros * 4]
        room = openmp_pool.scratch(sum(sizes))
        sheet.marks, sheet.own, sheet.steps, _ = accumulate(sizes, initial=room.data_ptr())
        openmp_pool.run(embedding.descent_kernel(*_kind(table, batch), table.update), sheet, threads)


def _sheet(table: SparseTable, batch: Batch, offsets: Tensor, sums: Tensor, cuts: NDArray[Any]) -> Sheet:
    """Return the arguments of a kernel.

    The sheet holds addresses only, so the caller must keep all arrays until the kernel has finished.
    """
    valued, values = (0, 0) if batch.values is None else (len(batch.values), batch.values.data_ptr())
    return Sheet(
        0, *table.weight.shape, len(table.squares), len(sums), len(batch.indices), valued, len(cuts) - 1, 0,
        table.weight.data_ptr(), table.squares.data_ptr(), batch.indices.data_ptr(), offsets.data_ptr(), values,
        sums.data_ptr(), cuts.ctypes.data,
    )  # fmt: skip


def _kind(table: SparseTable, batch: Batch) -> tuple[int, bool, bool]:
    return table.weight.shape[1], batch.indices.dtype == torch.int64, table.binary


def _check(indices: Any, offsets: NDArray[Any], rows: int) -> None:
    # As unsigned numbers, negative indices are too large.
    unsigned = indices.view(np.uint32 if indices.itemsize == 4 else np.uint64)
    at = int(embedding.first_fault(unsigned, offsets, unsigned.dtype.type(min(rows, np.iinfo(unsigned.dtype).max))))
    if at >= 0:
        sample = int(np.searchsorted(offsets, at, side="right")) - 1
        what = f"index {int(indices[at]):,} is not one of the table's rows, 0 to {rows - 1:,}"
        raise DataError(what, row=sample, remedy="Check the data, or make the table as large as the input is wide.")
    if at < -1:
        raise DataError(
            f"offset {-2 - at} of the batch is wrong", remedy="Offsets are one more than there are samples: they "
            f"begin with 0, never fall, and end with the number of indices, {len(indices):,}.",
        )  # fmt: skip
