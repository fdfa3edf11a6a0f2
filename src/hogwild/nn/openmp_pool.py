"""A kernel over the parts of a batch, on as many threads as PyTorch has for its own arithmetic.

Best on those very threads: between two operations they spin, and others would find no core. PyTorch's are OpenMP's,
which has a function for it; where there is none, Python's are woken.
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

from hogwild.kernels.batch_queue import Sheet

PARTS = 4  # of a batch for each thread: whoever is held up leaves the rest to the others
WORTH = 2**17  # numbers that a thread must have to read before it is worth waking
KEPT = 2**26  # bytes at most that a thread keeps for the next batch
_PROCESS = os.getpid()  # a copy of it has none of its threads
_NOTHING = torch.empty(0, dtype=torch.uint8)
_kept = threading.local()

Team = Callable[[int, int, int, int], None]


def threads_for(numbers: int) -> int:
    """How many threads a batch is worth that has so many numbers to read."""
    return max(min(torch.get_num_threads(), numbers // WORTH), 1)


def cuts(offsets: NDArray[Any], threads: int) -> NDArray[Any]:
    """Where to cut a batch so that its parts have about as many non-zeros each.

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
    """The same for a whole of which each thread has one share.

    >>> shares(10, 3)
    array([ 0,  3,  6, 10])
    """
    return np.arange(threads + 1) * whole // threads


def scratch(size: int) -> Tensor:
    """So many bytes that nobody else has while this thread needs them; those that are kept need not be found again."""
    found: Tensor = getattr(_kept, "bytes", _NOTHING)
    if len(found) < size:
        found = torch.empty(size, dtype=torch.uint8)
        if size <= KEPT:
            _kept.bytes = found
    return found


def run(kernel: Any, sheet: Sheet, threads: int) -> None:
    """Let so many threads take parts of a batch; Python's other threads may go on meanwhile."""
    address, team = ctypes.addressof(sheet), _team()
    if threads == 1:
        kernel.ctypes(address)
    elif team is not None and os.getpid() == _PROCESS:
        team(kernel.address, address, threads, 0)
    else:
        helpers = [_pool(os.getpid(), threads - 1).submit(kernel.ctypes, address) for _ in range(threads - 1)]
        kernel.ctypes(address)
        for helper in helpers:
            if not helper.cancel():  # one that the system had no core for is not waited for
                helper.result()


@functools.cache
def _team() -> Team | None:
    """Calls a function on the threads that PyTorch uses, if they are OpenMP's as GCC calls them."""
    try:
        found = ctypes.CDLL(torch._C.__file__).GOMP_parallel  # in one of the libraries it needs
    except (AttributeError, OSError):
        return None
    found.argtypes, found.restype = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint), None
    return found


@functools.cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Threads that stay; a copy of this process has none of them, and needs its own."""
    return ThreadPoolExecutor(threads, "hogwild-batch")
