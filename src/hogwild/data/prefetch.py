"""Prefetching: several threads compute results ahead of their use, and the caller gets them in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from hogwild.machine import usable_cores

MOST = 8  # Largest number of threads.
Given = TypeVar("Given")
Made = TypeVar("Made")


def reader_threads() -> int:
    """Return the number of threads that work ahead."""
    return min(MOST, usable_cores())


def map_in_order(make: Callable[[Given], Made], given: Iterable[Given]) -> Iterator[tuple[Given, Made]]:
    """Yield each item and the result of ``make`` for it, in order, computed ahead on several threads.

    Each thread has one item in advance. The function raises an exception of ``make`` at the turn of the item that
    caused it. Threads gain time only if ``make`` releases the global interpreter lock (GIL).

    >>> list(map_in_order(len, ["a", "bcd", ""]))
    [('a', 1), ('bcd', 3), ('', 0)]
    """
    threads = reader_threads()
    with ThreadPoolExecutor(threads, "hogwild-reads") as pool:
        waiting: deque[tuple[Given, Future[Made]]] = deque()
        try:
            for one in given:
                waiting.append((one, pool.submit(make, one)))
                if len(waiting) > threads:
                    yield _next(waiting)
            while waiting:
                yield _next(waiting)
        finally:
            for _, made in waiting:
                made.cancel()


def _next(waiting: deque[tuple[Given, Future[Made]]]) -> tuple[Given, Made]:
    one, made = waiting.popleft()
    return one, made.result()
