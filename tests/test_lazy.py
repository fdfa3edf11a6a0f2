"""Attributes that are computed when they are first read, and locks, in processes that are forked meanwhile."""

from __future__ import annotations

import mmap
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hogwild import guarded_map
from hogwild.lazy import cached_property


class Slow:
    """An object whose attribute takes as long as a test wants."""

    def __init__(self, begun: threading.Event, go_on: threading.Event) -> None:
        self.begun, self.go_on, self.times = begun, go_on, 0

    @cached_property
    def answer(self) -> int:
        """The answer, after a while."""
        self.begun.set()
        self.go_on.wait(20)
        self.times += 1
        return 42


def ready() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


def test_it_is_computed_once_and_can_be_forgotten() -> None:
    one = Slow(ready(), ready())
    assert (one.answer, one.answer, one.times) == (42, 42, 1)
    del one.answer
    assert (one.answer, one.times) == (42, 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_process_that_is_forked_meanwhile_can_compute_it() -> None:
    """It used to wait for ever for a lock that a thread of its parent had."""
    begun, go_on = threading.Event(), threading.Event()
    busy = threading.Thread(target=lambda: Slow(begun, go_on).answer)
    busy.start()
    assert begun.wait(20)
    code = forked(lambda: Slow(ready(), ready()).answer == 42)
    go_on.set()
    busy.join()
    assert code == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_process_that_is_forked_meanwhile_can_map_files(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(mmap.PAGESIZE))

    def maps() -> bool:
        with path.open("rb") as file:
            return len(guarded_map.map_file(file.fileno(), mmap.PAGESIZE)) == mmap.PAGESIZE

    assert maps()
    with guarded_map._lock:
        assert forked(maps) == 0
    assert maps()


def forked(task: Callable[[], bool]) -> int:
    """The exit code of a forked process: 0 if the task was done in time."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        os._exit(not task())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
