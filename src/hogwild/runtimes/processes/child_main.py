"""Entry point of a new process: opens its shared memory, its task and its pipes, and runs the task."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

from hogwild.runtimes.processes.shared_memory import SharedBlock
from hogwild.signals import leave_signals_to_parent

Report = Callable[[dict[str, Any]], None]


def main(given: dict[str, Any], files: list[int]) -> None:
    """Run the task of this process, and exit; report an exception with its traceback.

    ``given`` has the paths, the environment, the rank and the sizes of the memory blocks. ``files`` are the pipe that
    closes when the parent terminates, the pipe for reports, the socket for orders, and the memory blocks. The exit
    status is 0 after the task, 1 after an exception, and 3 if the parent has terminated.
    """
    parent_pipe, reports, orders, *blocks = files
    leave_signals_to_parent()
    threading.Thread(target=_exit_when_closed, args=(parent_pipe,), daemon=True).start()
    _end_forks_with_this_process([reports, orders])
    out = os.fdopen(reports, "w", buffering=1)

    def report(what: dict[str, Any]) -> None:
        out.write(json.dumps(what) + "\n")

    try:
        _take_over_environment(given)
        shared = [SharedBlock(size, fd) for size, fd in zip(given["sizes"], blocks, strict=True)]
        _run_task(given, shared, report, orders)
    except BaseException as error:
        report({"kind": "failed", "error": in_words(error), "traceback": traceback.format_exc()})
        _exit(1)
    report({"kind": "done"})
    _exit(0)


def _exit(status: int) -> None:
    """Flush the output and exit at once.

    Exit handlers of libraries could block for ever, and this process has nothing left to finish.
    """
    flush()
    os._exit(status)


def flush() -> None:
    """Flush ``sys.stdout`` and ``sys.stderr``, so that output of the model and the data set is not lost."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _take_over_environment(given: dict[str, Any]) -> None:
    """Take over the import paths, arguments, working directory and environment of the calling program."""
    sys.path[:], sys.argv[:] = given["path"], given["argv"]
    os.chdir(given["folder"])
    os.environ.clear()
    os.environ.update(given["environment"])


def in_words(error: BaseException) -> str:
    """Return an error in one line: its type, what it says, and its notes.

    >>> wrong = ValueError("2 is not 3")
    >>> wrong.add_note("This happened in the loss.")
    >>> in_words(wrong)
    'ValueError: 2 is not 3 This happened in the loss.'
    """
    return " ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])


def _run_task(given: dict[str, Any], blocks: list[SharedBlock], report: Report, orders: int) -> None:
    from hogwild.runtimes.processes.shared_counters import SharedCounters
    from hogwild.runtimes.processes.shared_pickle import loads, unframe
    from hogwild.runtimes.processes.shared_tensors import open_shared_tensors

    task_block, arena_block, counters_block, *arrays = blocks
    description, content = unframe(task_block.bytes[: given["length"]])
    arena = open_shared_tensors(arena_block, description)
    run, work = loads(content, arena, arrays)
    counters = SharedCounters(given["workers"], counters_block)
    run(work, given["rank"], counters, report=report, orders=orders, arena=arena)


def _end_forks_with_this_process(files: list[int]) -> None:
    """Make forks of this process, such as data-loading processes, terminate with it.

    In a fork these ``files`` lead to ``os.devnull``, so that the fork cannot report in this process's name. The
    fork waits in a thread for the end of a pipe that only this process holds open.
    """
    read_end, write_end = os.pipe()

    def begin() -> None:
        devnull = os.open(os.devnull, os.O_RDWR)
        for fd in (*files, write_end):
            os.dup2(devnull, fd)
        threading.Thread(target=_exit_when_closed, args=(read_end,), daemon=True).start()

    os.register_at_fork(after_in_child=begin)


def _exit_when_closed(pipe: int) -> None:
    """Wait until the pipe closes because the parent has terminated, even by SIGKILL; then exit with status 3."""
    while os.read(pipe, 1):
        pass
    os._exit(3)
