"""Signals that come where an interruption would be swallowed, or would leave something half done."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hogwild.files import try_folder
from hogwild.signals import Interrupt, Termination, terminations

PROGRAM = """
import os, signal, time, weakref
from hogwild.signals import terminations

class Thing: ...

with terminations() as termination:
    thing = Thing()
    weakref.finalize(thing, os.kill, os.getpid(), signal.SIGTERM)
    try:
        del thing
        time.sleep(10)
    except KeyboardInterrupt:
        raise SystemExit(termination.exit_code)
"""


def test_an_interruption_waits_for_the_end_of_an_object() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, timeout=60, env=dict(os.environ))
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGTERM, b"")


TOLD = """
import multiprocessing, os, signal, sys, threading, time
from hogwild.signals import blocked_signals, terminations

def child(): ...

def signal_soon():
    time.sleep(float(sys.argv[1]))
    os.kill(os.getpid(), signal.SIGTERM)

if __name__ == "__main__":
    with terminations() as termination:
        # A thread that takes the signal has Python run the handler in the main thread, which has it blocked.
        threading.Thread(target=signal_soon).start()
        try:
            process = multiprocessing.get_context("spawn").Process(target=child)
            while True:
                with blocked_signals():
                    process.start()
                process.join()
                process = multiprocessing.get_context("spawn").Process(target=child)
        except KeyboardInterrupt:
            process.join() if process.pid else None
            raise SystemExit(termination.exit_code)
"""


@pytest.mark.parametrize("seconds", [0.3, 0.31, 0.32, 0.33, 0.34, 0.35])
def test_a_process_is_started_before_its_parent_is_interrupted(seconds: float, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(TOLD)
    ended = subprocess.run([sys.executable, program, str(seconds)], capture_output=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGTERM, b"")


PLACES = [
    ("/multiprocessing/popen_spawn_posix.py", "call"), ("/typer/_adapters.py", "call"), ("/weakref.py", "call"),
    ("/concurrent/futures/thread.py", "_adjust_thread_count"), ("/hogwild/files.py", "try_folder"),
    ("/hogwild/files.py", "replacing"), ("/hogwild/files.py", "new_folder"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "function"), PLACES)
def test_code_that_must_not_be_left_is_left_later(file: str, function: str) -> None:
    place: dict[str, Any] = {}
    text = f"def {function}(handler):\n    import sys\n    handler(15, sys._getframe())\n"
    exec(compile(text, f"/lib{file}", "exec"), place)
    with terminations() as termination:
        place[function](termination)
        with pytest.raises(KeyboardInterrupt):
            time.sleep(10)


def test_a_pool_that_waits_for_its_threads_can_be_left() -> None:
    place: dict[str, Any] = {}
    text = "def shutdown(handler):\n    import sys\n    handler(15, sys._getframe())\n"
    exec(compile(text, "/lib/concurrent/futures/thread.py", "exec"), place)
    with terminations() as termination, pytest.raises(KeyboardInterrupt):
        place["shutdown"](termination)


SPAWN = """
import multiprocessing, signal
from hogwild.signals import ENDING, spawning

with spawning():
    process = multiprocessing.get_context("spawn").Process(target=print)
    process.start()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
process.kill()
raise SystemExit(not set(ENDING) <= blocked)
"""


def test_the_first_process_that_is_started_begins_with_signals_blocked() -> None:
    ended = subprocess.run([sys.executable, "-c", SPAWN], capture_output=True, timeout=60, env=dict(os.environ))
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize("handler", [Interrupt, Termination])
def test_a_limit_of_processor_time_that_repeats_its_signal_interrupts_once(handler: Any) -> None:
    interrupt = handler()
    with suppress(KeyboardInterrupt):
        interrupt(signal.SIGXCPU, None)
    interrupt(signal.SIGXCPU, None)
    assert interrupt.number == signal.SIGXCPU


def try_for_ever(folder: Path, seconds: float) -> None:
    signal.setitimer(signal.ITIMER_REAL, seconds)
    while True:
        try_folder(folder, folder / "a.log")
        time.sleep(1e-4)


def test_an_interruption_leaves_no_temporary_file(tmp_path: Path) -> None:
    dice, before = random.Random(0), signal.getsignal(signal.SIGALRM)
    try:
        for _ in range(200):
            signal.signal(signal.SIGALRM, Termination())
            with pytest.raises(KeyboardInterrupt):
                try_for_ever(tmp_path, dice.random() * 3e-4 + 2e-5)
            assert list(tmp_path.iterdir()) == []
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_signal_after_the_end_of_a_command_interrupts_nothing() -> None:
    with terminations() as termination:
        pass
    termination(signal.SIGTERM, None)
    assert termination.exit_code == 128 + signal.SIGTERM


LAST = """
import os, signal
from hogwild.signals import terminations
with terminations(last=True):
    pass
os.kill(os.getpid(), signal.SIGINT)
"""


def test_ctrl_c_at_the_end_of_a_process_prints_nothing() -> None:
    ended = subprocess.run([sys.executable, "-c", LAST], capture_output=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, b"")
