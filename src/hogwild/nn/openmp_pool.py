"""Thread pool that runs a kernel over the parts of a batch, on as many threads as PyTorch has for its own arithmetic.

The best threads are PyTorch's own: between two operations they spin, and other threads would find no free core.
PyTorch's threads belong to OpenMP, whose function ``GOMP_parallel`` runs a kernel on them. Where that function is
missing, Python threads are woken instead.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hogwild.kernels.work_queue import Sheet

# Number of parts of a batch per thread, so that other threads take over the parts of a delayed one.
PARTS = 4
# Minimum count of numbers to read per thread for which waking it pays.
WORTH = 2**17
# Maximum bytes that a thread keeps for the next batch.
KEPT = 2**26
# Process that imported this module; a forked process has none of its threads.
_PROCESS = os.getpid()
_NOTHING = torch.empty(0, dtype=torch.uint8)
_kept = threading.local()

Team = Callable[[int, int, int, int], None]


def threads_for(numbers: int) -> int:
    """Return the number of threads for a batch with ``numbers`` numbers to read."""
    return max(min(torch.get_num_threads(), numbers // WORTH), 1)


def cuts(offsets: NDArray[Any], threads: int) -> NDArray[Any]:
    """Return the cuts of a batch into parts with about as many non-zeros each.

    >>> cuts(np.array([0, 1, 2, 10, 11, 20]), 1), cuts(np.array([0, 1, 2, 10, 11, 20]), 2)
    (array([0, 5]), array([0, 3, 3, 3, 3, 5, 5, 5, 5]))
    """
    if threads == 1:
        return np.array([0, len(offsets) - 1])
    parts = PARTS * threads
    found: NDArray[Any] = np.searchsorted(offsets, offsets[-1] * np.arange(parts + 1) / parts)
    found[0], found[-1] = 0, len(offsets) - 1
    return found


@functools.cache
def shares(whole: int, threads: int) -> NDArray[Any]:
    """Return the cuts of ``whole`` items into one equal share per thread.

    >>> shares(10, 3)
    array([ 0,  3,  6, 10])
    """
    return np.arange(threads + 1) * whole // threads


def scratch(size: int) -> Tensor:
    """Return ``size`` bytes of memory that only this thread uses; up to KEPT bytes are kept for the next call."""
    found: Tensor = getattr(_kept, "bytes", _NOTHING)
    if len(found) < size:
        found = torch.empty(size, dtype=torch.uint8)
        if size <= KEPT:
            _kept.bytes = found
    return found


def run(kernel: Any, sheet: Sheet, threads: int) -> None:
    """Run a kernel on ``threads`` threads that claim parts of a batch, without holding the global interpreter lock."""
    address, team = ctypes.addressof(sheet), _team()
    if threads == 1:
        kernel.ctypes(address)
    elif team is not None and os.getpid() == _PROCESS:
        team(kernel.address, address, threads, 0)
    else:
        helpers = [_pool(os.getpid(), threads - 1).submit(kernel.ctypes, address) for _ in range(threads - 1)]
        kernel.ctypes(address)
        for helper in helpers:
            # A helper that has not started yet, because there was no free core, is cancelled instead of awaited.
            if not helper.cancel():
                helper.result()


@functools.cache
def _team() -> Team | None:
    """Return the function that runs another on PyTorch's threads, if they belong to GCC's OpenMP; else None."""
    try:
        # The symbol is in one of the libraries that PyTorch loads.
        found = ctypes.CDLL(torch._C.__file__).GOMP_parallel
    except (AttributeError, OSError):
        return None
    found.argtypes, found.restype = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint), None
    return found


@functools.cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Return a persistent thread pool; a forked process has no copies of its threads, and needs a pool of its own."""
    return ThreadPoolExecutor(threads, "hogwild-batch")
