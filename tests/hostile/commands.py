"""Commands as users run them, in processes of their own, and what none of them may ever do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

MAIN = [sys.executable, "-c", "import sys; from hogwild.cli import main; sys.exit(main())"]
NEVER = ("Traceback", "should not happen", "Exception ignored", "Fatal Python error")
LEFT_SECONDS = 15.0  # within which all processes of a command that has ended are gone


def start(*words: object, **options: object) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own."""
    return subprocess.Popen(
        [*MAIN, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **options
    )  # type: ignore[call-overload, no-any-return]


def ended(process: subprocess.Popen[bytes], timeout: float = 120.0) -> tuple[int, str, str]:
    """Wait for a command, check what holds for all of them, and return its exit code and output."""
    try:
        out, err = (part.decode("utf-8", "replace") for part in process.communicate(timeout=timeout))
    except subprocess.TimeoutExpired:
        for each in session(process.pid):
            each.kill()
        raise
    assert not [word for word in NEVER if word in err], err
    end = time.monotonic() + LEFT_SECONDS
    while (left := session(process.pid)) and time.monotonic() < end:
        time.sleep(0.05)
    names = [each.name() for each in left]
    for each in left:
        each.kill()
    assert not left, f"left after the end: {names}"
    return process.returncode, out, err


def run(*words: object, timeout: float = 120.0, **options: object) -> tuple[int, str, str]:
    """Run a command to its end."""
    return ended(start(*words, **options), timeout)


def wait_for_handlers(process: subprocess.Popen[bytes]) -> None:
    """Wait until a command handles signals, or has ended. Before that, Python itself prints where Ctrl-C came."""
    end = time.monotonic() + LEFT_SECONDS
    while process.poll() is None and time.monotonic() < end:
        caught = next(line for line in _status(process.pid) if line.startswith("SigCgt:"))
        if int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.01)


def _status(pid: int) -> list[str]:
    try:
        return [*Path(f"/proc/{pid}/status").read_text().splitlines(), "SigCgt: 0"]
    except OSError:
        return ["SigCgt: 0"]


def session(leader: int) -> list[psutil.Process]:
    """Return the processes of a session that have not ended."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found


def leftovers(folder: Path) -> list[str]:
    """Return the temporary files that were left in a folder."""
    return [str(path.relative_to(folder)) for path in folder.rglob(".*") if path.name != ".cache"]
