"""Memory for large tables in large pages.

Every row of a large table is on a page of its own, and of 4 KiB pages the processor remembers but some thousands: to
find the page takes it as long as to read the row. Linux gives out pages of 2 MiB if it is asked to before memory is
first used.
"""

from __future__ import annotations

import ctypes
import mmap

import torch
from torch import Tensor

WORTH = 2**23  # bytes from which on it is
_ADVICE = getattr(mmap, "MADV_HUGEPAGE", None)


def empty(rows: int, width: int) -> Tensor:
    """A table without content, in large pages where the system has them.

    >>> empty(3, 2).shape
    torch.Size([3, 2])
    """
    table = torch.empty(rows, width)
    if _ADVICE is not None and table.device.type == "cpu" and table.nbytes >= WORTH:
        start = -(-table.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
        size = (table.data_ptr() + table.nbytes - start) // mmap.PAGESIZE * mmap.PAGESIZE
        # Advice that is not taken changes nothing.
        ctypes.CDLL(None).madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), _ADVICE)
    return table
