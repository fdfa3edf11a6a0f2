"""Threads that are given one task after another, and do not fall asleep in between."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from hogwild.kernels.spin_wait import announce_task, await_task, await_workers
from hogwild.kernels.work_queue import GATE, TASKS, new_queue

TICK = 0.05  # seconds between two looks at the clock and at Ctrl-C
Task = Callable[[int], bool]  # (worker) -> whether it is to be called again


class ThreadTeam:
    """Workers that share one board: the thread that gives out the tasks, which is worker 0, and the others' own.

    >>> crew, done = ThreadTeam(3), []
    >>> crew.run(lambda worker: bool(done.append(worker)))
    >>> crew.close(); sorted(done)
    [0, 1, 2]
    """

    def __init__(self, workers: int) -> None:
        self.board: NDArray[Any] = new_queue()
        self._task: Task | None = None
        self._failure: BaseException | None = None
        self._looked = 0.0
        self._workers = workers
        self._threads: list[threading.Thread] = []  # none until there is a task: waiting for one takes them time

    def run(self, task: Task, look: Callable[[], None] = lambda: None) -> None:
        """Have every worker do a task, this thread too, which looks up now and then.

        What is raised by ``look``, or by Ctrl-C, goes on its way at once: whoever lets it must see to it that workers
        come to an end, and :meth:`finish`.
        """
        self._looked = time.perf_counter()
        if len(self._threads) < self._workers - 1:
            self._start()
        self._give(task)
        while task(0):
            self._look(look)
        self.finish(look)

    def finish(self, look: Callable[[], None] = lambda: None) -> None:
        """Wait until all workers are done with all tasks, and look once more."""
        wanted, limit = int(self.board[TASKS]) * len(self._threads), int(TICK * 1e6)
        while self._threads and not await_workers(self.board, wanted, limit):
            self._look(look)
        look()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Let the threads go."""
        self._give(None)
        for thread in self._threads:
            thread.join()

    def _start(self) -> None:
        self._threads = [
            threading.Thread(target=self._attend, args=(worker,), name=f"hogwild_{worker}", daemon=True)
            for worker in range(1, self._workers)
        ]
        for thread in self._threads:
            thread.start()
        pin_round_robin(0)

    def _give(self, task: Task | None) -> None:
        self._task = task
        self.board[GATE] = 0 if task is None else 1  # until this thread is in compiled code itself
        if self._threads:
            announce_task(self.board)

    def _look(self, look: Callable[[], None]) -> None:
        if time.perf_counter() >= self._looked + TICK:
            look()
            self._looked = time.perf_counter()

    def _attend(self, worker: int) -> None:
        done = 0
        pin_round_robin(worker)
        while True:
            report = done > 0
            while not await_task(self.board, done, report):
                report = False
            done += 1
            task = self._task
            if task is None:
                self.board[GATE] = 0
                return
            try:
                while task(worker):
                    pass
            except BaseException as failure:
                self._failure = failure


def pin_round_robin(worker: int) -> None:
    """Move this thread to a core of its own; it may be moved again.

    Threads that wake up together often do so on one core, and a system that looks around only every few milliseconds
    lets them wait for each other there for as long as an epoch takes.
    """
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        if len(allowed) > 1:
            with contextlib.suppress(OSError):  # it is a favour, not a need
                os.sched_setaffinity(0, {allowed[worker % len(allowed)]})
                os.sched_setaffinity(0, allowed)
