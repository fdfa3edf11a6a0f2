"""Work that other threads do ahead of use, and in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from hogwild.machine import usable_cores

MOST = 8  # threads
Given = TypeVar("Given")
Made = TypeVar("Made")


def reader_threads() -> int:
    """How many threads work ahead."""
    return min(MOST, usable_cores())


def map_in_order(make: Callable[[Given], Made], given: Iterable[Given]) -> Iterator[tuple[Given, Made]]:
    """Each of what is given, and what one of several threads made of it, one for each thread beforehand.

    What goes wrong is raised when it is its turn. It is for work that leaves the interpreter to others meanwhile.

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
