"""Copies of large arrays to and from a GPU through pinned memory, which several threads fill during the copy before.

A direct copy of an array of NumPy runs at a sixth of the bus's rate, because the driver moves it through a small
pinned buffer with one thread. To pin the array itself takes as long as to copy it.
"""

# mypy: disable-error-code="attr-defined, call-arg, no-untyped-call"

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from hogwild.kernels.cuda_jit import cuda
from hogwild.machine import usable_cores

PART = 2**26  # bytes of a buffer: threads need long pieces, so as not to wait for each other
DIRECT = 2**22  # bytes of an array below which a direct copy is as fast
THREADS = 16  # most threads that fill a buffer


class Staging:
    """Two pinned buffers and the threads that fill them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads = min(THREADS, usable_cores())
        self._pool = ThreadPoolExecutor(self._threads, "hogwild-upload")
        self._buffers = [cuda.pinned_array(PART, np.uint8) for _ in range(2)]
        self._copied = [cuda.event(timing=False) for _ in range(2)]
        self._stream = cuda.stream()

    def copy(self, array: Any) -> Any:
        """Return a contiguous array in the memory of the GPU."""
        there = cuda.device_array(array.shape, array.dtype)
        source, target = array.reshape(-1).view(np.uint8), there.reshape(array.size).view(np.uint8)
        with self._lock:
            for number, start in enumerate(range(0, source.size, PART)):
                part, which = source[start : start + PART], number % 2
                if number >= 2:
                    self._copied[which].synchronize()
                self._fill(self._buffers[which], part)
                target[start : start + part.size].copy_to_device(self._buffers[which][: part.size], self._stream)
                self._copied[which].record(self._stream)
            self._stream.synchronize()
        return there

    def fetch(self, there: Any, array: Any) -> None:
        """Copy an array from the memory of the GPU to a contiguous one of the same size."""
        source, target = there.reshape(array.size).view(np.uint8), array.reshape(-1).view(np.uint8)
        starts = list(range(0, target.size, PART))
        with self._lock:
            cuda.default_stream().synchronize()
            for number, start in enumerate([*starts, -1]):
                if start >= 0:
                    part, which = target[start : start + PART], number % 2
                    source[start : start + part.size].copy_to_host(self._buffers[which][: part.size], self._stream)
                    self._copied[which].record(self._stream)
                if number > 0:  # The part before is copied on, while this one comes.
                    before = target[starts[number - 1] : starts[number - 1] + PART]
                    self._copied[(number - 1) % 2].synchronize()
                    self._fill(before, self._buffers[(number - 1) % 2][: before.size])

    def _fill(self, buffer: Any, part: Any) -> None:
        bounds = np.linspace(0, part.size, self._threads + 1).astype(np.int64)
        copies = [
            self._pool.submit(np.copyto, buffer[first:last], part[first:last]) for first, last in pairwise(bounds)
        ]
        for copied in copies:
            copied.result()


@cache
def staging() -> Staging:
    """Return the buffers of this process."""
    return Staging()
