"""Work shared with threads that stay: results in order, nested calls, failures, forked processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from hogwild import parallel
from hogwild.parallel import in_parallel


@pytest.fixture
def four_cores(monkeypatch):
    monkeypatch.setattr(parallel, "usable_cores", lambda: 4)
    monkeypatch.setattr(parallel, "allowed_cores", lambda: 4)
    parallel._helpers.cache_clear()
    yield
    parallel._helpers().shutdown(wait=True)
    parallel._helpers.cache_clear()


def test_results_are_in_the_order_of_the_parts(four_cores):
    def work(number: int) -> int:
        time.sleep(0.002 * (number % 3))
        return number**2

    assert in_parallel(work, range(40)) == [number**2 for number in range(40)]
    assert in_parallel(work, []) == []


def test_several_threads_work_at_the_same_time(four_cores):
    together = threading.Barrier(4, timeout=20)
    in_parallel(lambda _: together.wait(), range(4))


def test_no_more_threads_than_asked_for(four_cores):
    seen = set()

    def work(_: int) -> None:
        seen.add(threading.get_ident())
        time.sleep(0.002)

    in_parallel(work, range(30), threads=2)
    assert len(seen) <= 2


def test_threads_stay_for_the_next_call(four_cores):
    together = threading.Barrier(4, timeout=20)

    def names() -> set[str]:
        def name(_: int) -> str:
            together.wait()
            return threading.current_thread().name

        return set(in_parallel(name, range(4)))

    assert names() == names()


def test_parts_may_divide_their_work_further(four_cores):
    def outer(number: int) -> int:
        return sum(in_parallel(lambda other: number * other, range(8)))

    found = in_parallel(outer, range(16))
    assert found == [28 * number for number in range(16)]


@pytest.mark.parametrize("bad", [0, 7, 19])
def test_an_exception_ends_the_work(four_cores, bad):
    done = []

    def work(number: int) -> None:
        if number == bad:
            raise ValueError(f"part {number}")
        time.sleep(0.001)
        done.append(number)

    with pytest.raises(ValueError, match=f"part {bad}"):
        in_parallel(work, range(2_000))
    assert len(done) < 1_900


def test_an_interrupt_of_this_thread_leaves_no_work_behind(four_cores):
    started = threading.Event()
    running = []

    def work(number: int) -> None:
        if threading.current_thread() is threading.main_thread():
            started.wait(20)
            raise KeyboardInterrupt
        running.append(number)
        started.set()
        time.sleep(0.05)
        running.remove(number)

    with pytest.raises(KeyboardInterrupt):
        in_parallel(work, range(100))
    assert running == []


def test_without_threads_the_caller_works_alone(four_cores, monkeypatch):
    def too_many(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", too_many)
        assert in_parallel(lambda number: (number, threading.get_ident()), range(8)) == [
            (number, threading.get_ident()) for number in range(8)
        ]
    assert in_parallel(lambda number: number, range(8)) == list(range(8))


def test_errors_of_the_work_are_not_taken_for_a_lack_of_threads(four_cores):
    def work(number: int) -> None:
        raise RuntimeError(f"part {number}")

    with pytest.raises(RuntimeError, match="part"):
        in_parallel(work, range(8))


LATE = """
import atexit, threading
from hogwild import parallel
parallel.usable_cores = parallel.allowed_cores = lambda: 4

def work():
    print(parallel.in_parallel(lambda number: number, range(8)))

def later():
    threading.main_thread().join()
    work()
"""


@pytest.mark.parametrize(
    "end", ["threading.Thread(target=later).start()", "atexit.register(work)", "work(); atexit.register(work)"]
)
def test_work_goes_on_when_the_interpreter_is_ending(end):
    done = subprocess.run([sys.executable, "-c", LATE + end], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert set(done.stdout.splitlines()) == {str(list(range(8)))}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(four_cores):
    in_parallel(lambda number: number, range(8))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, bytes(in_parallel(lambda number: number, range(8))))
        os._exit(0)
    os.close(writing)
    deadline = time.monotonic() + 20
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, 9)
            pytest.fail("The forked process waits for threads of its parent.")
        time.sleep(0.01)
    assert os.read(reading, 8) == bytes(range(8))
    os.close(reading)
