"""Short measurements of the machine: compiled code, parallelism of threads, and memory bandwidth."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from hogwild.cache_folder import CacheFolder, cache_folder
from hogwild.data.csr import Array
from hogwild.jit import compiled

LEAST, MOST = 2**26, 2**29  # minimum and maximum number of bytes read to measure memory bandwidth
TURNS = 40_000_000  # iterations of the loop that keeps a core busy, about 50 ms


@dataclass(frozen=True, slots=True)
class Compiler:
    """Result of compiling a small function."""

    works: bool
    seconds: float
    cache: CacheFolder  # folder of cached machine code


def check_compiler() -> Compiler:
    """Compile a small function, run it, and find the folder of its machine code.

    >>> check_compiler().works
    True
    """
    started = time.perf_counter()
    right = add_up(np.arange(1000, dtype=np.uint64)) == 499_500
    seconds = time.perf_counter() - started
    return Compiler(bool(right), seconds, cache_folder(__file__))


def measure_parallelism(threads: int) -> float:
    """Measure the work of several threads (best of three) relative to that of one thread (best of two)."""
    keep_busy(1)
    alone = min(_seconds(1, lambda _: keep_busy(TURNS)) for _ in range(2))
    together = min(_seconds(threads, lambda _: keep_busy(TURNS)) for _ in range(3))
    return threads * alone / together


def measure_bandwidth(threads: int, size: int) -> float:
    """Measure the bytes per second that all threads together read from memory, as the best of three measurements."""
    words = np.ones(size // 8, np.uint64)
    parts: list[Array] = np.array_split(words, threads)
    add_up(parts[0][:8])
    return words.nbytes / min(_seconds(threads, lambda part: add_up(parts[part])) for _ in range(3))


def bandwidth_bytes(largest_cache: int, free: int) -> int:
    """Return the number of bytes to read: twice the largest cache, at most an eighth of the free memory.

    A smaller amount would measure the cache instead of the memory.

    >>> bandwidth_bytes(0, 2**40) == LEAST, bandwidth_bytes(2**40, 2**40) == MOST, bandwidth_bytes(0, 2**20)
    (True, True, 131072)
    """
    return min(max(LEAST, min(2 * largest_cache, MOST)), max(8, free // 8))


def _seconds(threads: int, work: Callable[[int], object]) -> float:
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(time.sleep, [0.001] * threads))  # starts the threads before the measured interval
        started = time.perf_counter()
        list(pool.map(work, range(threads)))
        return time.perf_counter() - started


@compiled
def add_up(words: Array) -> np.uint64:
    """Read every word, and return the sum."""
    total = np.uint64(0)
    for k in range(words.size):
        total += words[k]
    return total


@compiled
def keep_busy(turns: int) -> np.uint64:
    """Compute a chain of operations, each of which depends on the one before, so that no compiler removes it."""
    state = np.uint64(1)
    for _ in range(turns):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
    return state
