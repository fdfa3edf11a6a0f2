"""Short work on all cores, by threads that stay for the life of the process.

A call of ``minimise`` divides a dozen steps among threads: checks, counts, copies, sums. To start 15 threads for each
takes longer than many of these steps.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from concurrent.futures.thread import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

from hogwild.machine import allowed_cores, spread_over_cores, usable_cores

Part = TypeVar("Part")
Result = TypeVar("Result")


def in_parallel(work: Callable[[Part], Result], parts: Iterable[Part], threads: int | None = None) -> list[Result]:
    """Return ``[work(part) for part in parts]``, computed on some threads or on all cores.

    This thread works too, and waits only for parts that other threads have begun. So ``work`` may itself call this
    function. ``work`` has to leave the interpreter to others while it is busy, as NumPy and compiled functions do.
    After an exception no further part begins. Where no threads can be had, this one works alone.

    >>> in_parallel(lambda number: number**2, range(5))
    [0, 1, 4, 9, 16]
    """
    todo = deque(enumerate(parts))
    if len(todo) <= 1:
        return [work(part) for _, part in todo]
    results: list[Any] = [None] * len(todo)
    count = min(len(todo), threads or usable_cores())

    def share() -> None:
        try:
            while todo:
                try:
                    number, part = todo.popleft()
                except IndexError:  # Another thread has taken the last part.
                    return
                results[number] = work(part)
        except BaseException:
            todo.clear()
            raise

    def help_out(other: Future[None]) -> None:
        if other.set_running_or_notify_cancel():
            try:
                share()
                other.set_result(None)
            except BaseException as error:
                other.set_exception(error)

    # Each is noted before a thread gets it. A thread that cannot be started leaves it in the queue, to be cancelled.
    others: list[Future[None]] = []
    with suppress(RuntimeError):  # The interpreter is ending, or there are too many threads.
        for _ in range(count - 1):
            others.append(Future())
            _helpers().submit(help_out, others[-1])
    try:
        share()
    finally:
        begun = [other for other in others if not other.cancel()]
        failures = [other.exception() for other in begun]
    for failure in failures:
        if failure is not None:
            raise failure
    return results


@cache
def _helpers() -> ThreadPoolExecutor:
    """Return the threads of this process; each starts when it is first needed."""
    numbers = itertools.count(1)
    return ThreadPoolExecutor(
        max(1, allowed_cores() - 1), "hogwild-helper", initializer=lambda: spread_over_cores(next(numbers))
    )


# A forked process has none of the threads of its parent.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)
