"""Thread team: threads that run one task after another and spin between tasks instead of sleeping.

A thread that finds no task for one millisecond sleeps in the kernel; see :mod:`hogwild.kernels.work_queue`.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from hogwild.kernels.work_queue import GATE, TASKS, announce_task, await_task, await_workers, new_queue
from hogwild.machine import spread_over_cores

TICK = 0.05  # seconds between two returns of the main thread to Python, for the clock and for Ctrl-C
Task = Callable[[int], bool]  # function of the worker's number; it returns whether it must be called again


class ThreadTeam:
    """Workers that share one work queue: the calling thread, which is worker 0, and further threads.

    >>> team, done = ThreadTeam(3), []
    >>> team.run(lambda worker: bool(done.append(worker)))
    >>> team.close(); sorted(done)
    [0, 1, 2]
    """

    def __init__(self, workers: int) -> None:
        self.queue: NDArray[Any] = new_queue()
        self._task: Task | None = None
        self._failure: BaseException | None = None
        self._last_poll = 0.0
        self._workers = workers
        # The threads start with the first task, because threads that wait for a task take processor time.
        self._threads: list[threading.Thread] = []

    def run(self, task: Task, poll: Callable[[], None] = lambda: None) -> None:
        """Run a task in every worker, including this thread; call ``poll`` every ``TICK`` seconds and at the end.

        Exceptions of ``poll`` and of Ctrl-C propagate at once, while other workers are running. The caller must then
        stop the workers and call :meth:`finish`.
        """
        self._last_poll = time.perf_counter()
        if len(self._threads) < self._workers - 1:
            self._start()
        self._announce(task)
        while task(0):
            self._poll(poll)
        self.finish(poll)

    def finish(self, poll: Callable[[], None] = lambda: None) -> None:
        """Wait until all workers have finished all tasks, and call ``poll`` once more.

        If tasks raised exceptions in workers other than this thread, raise the last of them.
        """
        wanted, limit = int(self.queue[TASKS]) * len(self._threads), int(TICK * 1e6)
        while self._threads and not await_workers(self.queue, wanted, limit):
            self._poll(poll)
        poll()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Terminate the threads and join them."""
        self._announce(None)
        for thread in self._threads:
            thread.join()

    def _start(self) -> None:
        self._threads = [
            threading.Thread(target=self._serve_tasks, args=(worker,), name=f"hogwild_{worker}", daemon=True)
            for worker in range(1, self._workers)
        ]
        for thread in self._threads:
            thread.start()
        spread_over_cores(0)

    def _announce(self, task: Task | None) -> None:
        self._task = task
        # The gate stays locked until this thread enters compiled code, so that no other worker competes for the GIL.
        self.queue[GATE] = 0 if task is None else 1
        if self._threads:
            announce_task(self.queue)

    def _poll(self, poll: Callable[[], None]) -> None:
        if time.perf_counter() >= self._last_poll + TICK:
            poll()
            self._last_poll = time.perf_counter()

    def _serve_tasks(self, worker: int) -> None:
        done = 0
        spread_over_cores(worker)
        while True:
            report = done > 0
            while not await_task(self.queue, done, report):
                report = False
            done += 1
            task = self._task
            if task is None:
                self.queue[GATE] = 0
                return
            try:
                while task(worker):
                    pass
            except BaseException as failure:
                self._failure = failure


class SliceTuner:
    """Estimate of the number of parts of an epoch that take a given time, from the last slice that was measured.

    The estimate is kept from one epoch to the next. The first slice is one part. Each slice has at most twice the parts
    of the slice before, because parts differ in duration.

    >>> slices = SliceTuner()
    >>> slices.parts_for(0.05)
    1
    >>> slices.record(4, 0.01); slices.parts_for(0.05), slices.parts_for(0.005)
    (8, 2)
    """

    def __init__(self) -> None:
        self._parts, self._seconds = 1, math.inf

    def parts_for(self, seconds: float) -> int:
        """Return the number of parts for the next slice, so that it takes about ``seconds`` seconds."""
        return max(1, min(2 * self._parts, int(self._parts * seconds / max(self._seconds, 1e-9))))

    def record(self, parts: int, seconds: float) -> None:
        """Record that a slice of ``parts`` parts took ``seconds`` seconds."""
        self._parts, self._seconds = parts, seconds
