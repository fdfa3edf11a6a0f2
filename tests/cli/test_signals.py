"""SIGTERM and SIGHUP end a command as Ctrl-C does: what was learnt is kept, and nothing else is left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hogwild import load
from hogwild.cli import main
from hogwild.signals import Interrupt, blocked_signals, deferred_interrupts, terminations

COMMAND = [sys.executable, "-c", "import sys; from hogwild.cli import main; sys.exit(main())"]


def press(number: int) -> Any:
    return signal.raise_signal(number)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_run_ends_with_its_model(
    number: int, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, model, points = tmp_path / "a.svm", tmp_path / "model", tmp_path / "points"
    assert main(["generate", "classification", str(data), "--rows", "300"]) == 0
    from hogwild.callbacks import JsonLines

    write = JsonLines.__call__

    def pressed(self: JsonLines, event: Any) -> None:
        write(self, event)
        if event["event"] == "epoch" and event["epoch"] == 2:
            press(number)

    monkeypatch.setattr(JsonLines, "__call__", pressed)
    command = ["train", str(data), "--workers", "1", "--epochs", "1000000", "--step", "0.1"]
    ended = main([*command, "--out", str(model), "--checkpoint", str(points), "--log", str(tmp_path / "log")])
    assert ended == code
    assert load(model).weights.any()
    assert sorted(path.name for path in points.iterdir()) == ["latest.safetensors", "previous.safetensors"]
    assert signal.getsignal(number) is signal.SIG_DFL
    assert "Traceback" not in capsys.readouterr().err


def test_another_command_ends_without_leftovers(tmp_path: Path) -> None:
    """A pipe without a reader makes the command wait; the signal comes while it does."""
    pipe = tmp_path / "a.svm"
    os.mkfifo(pipe)
    process = subprocess.Popen([*COMMAND, "generate", "classification", str(pipe), "--json"], stderr=subprocess.PIPE,
                               stdout=subprocess.PIPE)  # fmt: skip
    try:
        while handler_is_default(process.pid, signal.SIGHUP):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGHUP)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 129, err
    assert b'"kind": "KeyboardInterrupt"' in out
    assert b"Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["a.svm"]


def handler_is_default(pid: int, number: int) -> bool:
    """Whether a process has no handler of a signal yet."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return not int(line.split()[1], 16) >> (number - 1) & 1
    return True


def test_the_second_one_raises_and_the_third_ends_the_process() -> None:
    code = (
        "import os, signal, time\n"
        "from hogwild.signals import deferred_interrupts, terminations\n"
        "with terminations():\n"
        "    try:\n"
        "        with deferred_interrupts() as interrupt:\n"
        "            signal.raise_signal(signal.SIGTERM)\n"
        "            print(interrupt.pressed, flush=True)\n"
        "            signal.raise_signal(signal.SIGTERM)\n"
        "    except KeyboardInterrupt:\n"
        "        print('raised', flush=True)\n"
        "        signal.raise_signal(signal.SIGTERM)\n"
        "        print('never', flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "True\nraised\n")


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with terminations() as termination, deferred_interrupts() as interrupt:
            press(signal.SIGHUP)
            assert signal.getsignal(signal.SIGTERM) is interrupt
        assert not interrupt.pressed
        assert termination.number is None
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_program_that_is_no_command_has_its_usual_sigterm() -> None:
    with deferred_interrupts():
        assert isinstance(signal.getsignal(signal.SIGINT), Interrupt)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_signal_that_a_library_swallowed_ends_the_run() -> None:
    with terminations():
        with contextlib.suppress(KeyboardInterrupt):
            press(signal.SIGTERM)
        with deferred_interrupts() as interrupt:
            assert interrupt.pressed


PRESSED_DURING_AN_IMPORT = """
import sys

class Pressed:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Pressed())
from hogwild.__main__ import main
sys.exit(main())
"""


def test_ctrl_c_while_the_command_line_is_imported_is_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PRESSED_DURING_AN_IMPORT], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (130, "error: interrupted\n")


IMPORTED = """
import os, signal
os.kill(os.getpid(), signal.SIGTERM)
whole = sum(range(1000))
"""


def test_an_import_is_not_cut(tmp_path: Path) -> None:
    """A module that is being imported when the signal comes is whole, and the interruption comes right after it."""
    (tmp_path / "cut_module.py").write_text(IMPORTED)
    program = """
import sys, time
from hogwild.signals import terminations
with terminations() as termination:
    try:
        import cut_module
        time.sleep(60)
    except KeyboardInterrupt:
        sys.exit(termination.exit_code + (sys.modules["cut_module"].whole != 499500))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        timeout=50, check=False,
    )  # fmt: skip
    assert done.returncode == 143


def test_processes_begin_with_signals_blocked() -> None:
    """A signal to a whole group does not end a process that has not yet left signals to its parent."""
    program = "import time; time.sleep(0.5); from hogwild.signals import leave_signals_to_parent as leave; leave()"
    with blocked_signals():
        process = subprocess.Popen([sys.executable, "-c", program])
    process.send_signal(signal.SIGTERM)
    assert process.wait(50) == 0
