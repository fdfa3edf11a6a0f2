"""A compiled kernel over the samples of a batch, on as many threads as PyTorch has for its own arithmetic."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

PARTS = 4  # of a batch for each thread: whoever is held up leaves the rest to the others
WORTH = 2**17  # numbers that a thread must have to read before it is worth waking


def cuts(offsets: NDArray[Any], parts: int) -> list[int]:
    """Where to cut a batch so that each part has about as many non-zeros.

    >>> cuts(np.array([0, 1, 2, 10, 11, 20]), 2)
    [0, 3, 5]
    """
    ends = np.searchsorted(offsets, offsets[-1] * np.arange(1, parts) / parts)
    return [0, *ends.tolist(), len(offsets) - 1]


def for_all(kernel: Callable[..., Any], arguments: tuple[Any, ...], offsets: NDArray[Any], width: int) -> None:
    """Call ``kernel(*arguments, first, last)`` for all samples; a batch that is small is one thread's."""
    threads = min(torch.get_num_threads(), int(offsets[-1]) * width // WORTH)
    if threads < 2:
        kernel(*arguments, 0, len(offsets) - 1)
        return
    parts = iter(list(pairwise(cuts(offsets, PARTS * threads))))

    def work() -> None:
        for first, last in parts:  # each is taken by one of them
            kernel(*arguments, first, last)

    helpers = [_pool(os.getpid(), threads - 1).submit(work) for _ in range(threads - 1)]
    work()
    for helper in helpers:
        if not helper.cancel():  # one that the system had no core for is not waited for
            helper.result()


@functools.cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Threads that stay; a copy of this process has none of them, and needs its own."""
    return ThreadPoolExecutor(threads, "hogwild-batch")
