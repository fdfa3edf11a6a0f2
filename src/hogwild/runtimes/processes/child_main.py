"""The first thing a new process does: find its memory, its task and its way to report, and begin."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

from hogwild.runtimes.processes.shared_memory import SharedBlock

Report = Callable[[dict[str, Any]], None]


def main(given: dict[str, Any], files: list[int]) -> None:
    """Run the task that came in the parcel; whatever goes wrong is reported with its traceback.

    ``files`` are the lifeline, where to report, where orders come from, and the blocks of memory.
    """
    lifeline, reports, orders, *blocks = files
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the one that started us decides what it means
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    _hold_children([reports, orders])
    out = os.fdopen(reports, "w", buffering=1)

    def report(what: dict[str, Any]) -> None:
        out.write(json.dumps(what) + "\n")

    try:
        _be_at_home(given)
        _begin(given, [SharedBlock(size, fd) for size, fd in zip(given["sizes"], blocks, strict=True)], report, orders)
    except BaseException as error:
        report({"kind": "failed", "error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()})
        _leave(1)
    report({"kind": "done"})
    _leave(0)


def _leave(status: int) -> None:
    """End at once: nothing of ours waits to be finished, and libraries that wait at the end may wait for ever."""
    flush()
    os._exit(status)


def flush() -> None:
    """Let what the model or the data set has printed be seen."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _be_at_home(given: dict[str, Any]) -> None:
    """Have the paths, the folder and the environment of the program this process works for."""
    sys.path[:], sys.argv[:] = given["path"], given["argv"]
    os.chdir(given["folder"])
    os.environ.clear()
    os.environ.update(given["environment"])


def _begin(given: dict[str, Any], blocks: list[SharedBlock], report: Report, orders: int) -> None:
    from hogwild.runtimes.processes.shared_counters import SharedCounters
    from hogwild.runtimes.processes.shared_pickle import loads, unframe
    from hogwild.runtimes.processes.shared_tensors import open_shared_tensors

    parcel, arena_block, board_block, *arrays = blocks
    description, content = unframe(parcel.bytes[: given["length"]])
    arena = open_shared_tensors(arena_block, description)
    run, work = loads(content, arena, arrays)
    board = SharedCounters(given["workers"], board_block)
    run(work, given["rank"], board, report=report, orders=orders, arena=arena)


def _hold_children(ours: list[int]) -> None:
    """Let copies of this process, such as those that read data for it, end with it; none speaks for it."""
    leash, held = os.pipe()

    def begin() -> None:
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in (*ours, held):
            os.dup2(nothing, fd)
        threading.Thread(target=_end_with, args=(leash,), daemon=True).start()

    os.register_at_fork(after_in_child=begin)


def _end_with(lifeline: int) -> None:
    """End when the process that this one works for does, however it ends."""
    while os.read(lifeline, 1):
        pass
    os._exit(3)
