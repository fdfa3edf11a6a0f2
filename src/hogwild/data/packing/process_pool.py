"""Processes of this machine that call functions side by side. They do not import the program that starts them."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from queue import SimpleQueue
from typing import Any

from hogwild.errors import WorkerError
from hogwild.signals import blocked_signals, leave_signals_to_parent

_BOOT = "import sys; sys.path[:] = {path!r}; from hogwild.data.packing.process_pool import serve; serve()"


class ProcessPool:
    """Processes that call functions. As a context manager it ends them, also if they work.

    >>> with ProcessPool(2) as pool:
    ...     sorted(pool.call(divmod, [(7, 2), (9, 4)]))
    [(0, (3, 1)), (1, (2, 1))]
    """

    def __init__(self, processes: int) -> None:
        boot = [sys.executable, "-c", _BOOT.format(path=sys.path)]
        with blocked_signals():
            self._processes = [
                subprocess.Popen(boot, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(processes)
            ]
        self._idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        for process in self._processes:
            self._idle.put(process)

    def __enter__(self) -> ProcessPool:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()

    def call(self, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
        """Call a function of a module with each tuple of arguments; yield the number of each call and its result.

        Results come in the order in which the calls end. An error of a call is raised here.
        """
        with ThreadPoolExecutor(len(self._processes)) as threads:
            numbers = {threads.submit(self._call, function, each): number for number, each in enumerate(calls)}
            try:
                for ended in as_completed(numbers):
                    yield numbers[ended], ended.result()
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                for process in self._processes:
                    process.kill()  # The threads that wait for an answer get an end of file.
                raise

    def _call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        process = self._idle.get()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump((function, arguments), process.stdin)
            process.stdin.flush()
            succeeded, answer = pickle.load(process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            raise WorkerError(
                f"A process ended with code {process.wait()} while it packed: if it was killed for its memory, give it "
                "less (--memory), or start fewer processes."
            ) from None
        finally:
            self._idle.put(process)
        if not succeeded:
            raise answer
        return answer


def serve() -> None:
    """Call functions until the input ends. What they print goes to the standard error."""
    leave_signals_to_parent()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            function, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = True, function(*arguments)
        except Exception as error:
            answer = False, error
        pickle.dump(answer, answers)
        answers.flush()
