"""Short measurements of the machine: does compiled code work, do threads run in parallel, how fast is memory?"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hogwild.data.csr import Array
from hogwild.jit import compiled

LEAST, MOST = 2**26, 2**29  # bytes that are read to measure memory
TURNS = 40_000_000  # of the loop that keeps a core busy: some 50 ms


@dataclass(frozen=True, slots=True)
class Compiler:
    """What came of compiling a small function."""

    works: bool
    seconds: float
    cache: Path | None  # where machine code is kept
    writable: bool


def check_compiler() -> Compiler:
    """Compile a small function, run it, and see where the result is kept.

    >>> check_compiler().works
    True
    """
    started = time.perf_counter()
    right = add_up(np.arange(1000, dtype=np.uint64)) == 499_500
    seconds = time.perf_counter() - started
    place = getattr(getattr(add_up, "stats", None), "cache_path", None)
    cache = Path(place) if place else None
    return Compiler(bool(right), seconds, cache, cache is not None and os.access(cache, os.W_OK))


def measure_parallelism(threads: int) -> float:
    """How many times the work of one thread do this many threads get done? The best of three."""
    keep_busy(1)
    alone = min(_seconds(1, lambda _: keep_busy(TURNS)) for _ in range(2))
    together = min(_seconds(threads, lambda _: keep_busy(TURNS)) for _ in range(3))
    return threads * alone / together


def measure_bandwidth(threads: int, size: int) -> float:
    """Bytes per second that this many threads read from memory together. The best of three."""
    words = np.ones(size // 8, np.uint64)
    parts: list[Array] = np.array_split(words, threads)
    add_up(parts[0][:8])
    return words.nbytes / min(_seconds(threads, lambda part: add_up(parts[part])) for _ in range(3))


def bandwidth_bytes(largest_cache: int, free: int) -> int:
    """How much to read so that caches do not answer for the memory, without filling it.

    >>> bandwidth_bytes(0, 2**40) == LEAST, bandwidth_bytes(2**40, 2**40) == MOST, bandwidth_bytes(0, 2**20)
    (True, True, 131072)
    """
    return min(max(LEAST, min(2 * largest_cache, MOST)), max(8, free // 8))


def _seconds(threads: int, work: Callable[[int], object]) -> float:
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(time.sleep, [0.001] * threads))  # start them before the clock
        started = time.perf_counter()
        list(pool.map(work, range(threads)))
        return time.perf_counter() - started


@compiled
def add_up(words: Array) -> np.uint64:
    """Read every word."""
    total = np.uint64(0)
    for k in range(words.size):
        total += words[k]
    return total


@compiled
def keep_busy(turns: int) -> np.uint64:
    """A chain of operations, each of which needs the one before, so that no compiler can take it out."""
    state = np.uint64(1)
    for _ in range(turns):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
    return state
