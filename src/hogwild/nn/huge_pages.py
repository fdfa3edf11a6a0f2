"""Memory for large tables in huge pages.

Each row of a large table lies in another page. Of 4 KiB pages, the processor caches only a few thousand addresses. To
find the page takes as long as to read the row. Linux provides pages of 2 MiB, if a process requests them before the
first use of the memory.
"""

from __future__ import annotations

import ctypes
import mmap

import torch
from torch import Tensor

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
