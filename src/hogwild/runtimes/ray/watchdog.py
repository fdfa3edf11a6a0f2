"""Watchdog of a Ray cluster that a program started: it kills what is left of the cluster when the program has ended.

When the program is killed, the kernel kills the processes that Ray started from the program, but not the processes that
those have started: Ray's agents were still there 25 s later. After a failed start, Ray stops nothing (decision 46).

The watchdog is run as a script, with the program's process number and the cluster's mark. It imports nothing of this
package, so that it takes 0.05 s of CPU time and 13 MiB. It waits for the end of the program, or for ``END``.
"""

from __future__ import annotations

import os
import select
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

MARK = "HOGWILD_CLUSTER_MARK"  # variable of all processes of a cluster that a program started
END = b"\0"  # message of the program: the cluster has been stopped
POLL_SECONDS = 0.5
LIMIT_SECONDS = 10.0  # time after which processes that cannot be killed are left
# A process of the program that was forked but runs no command of Ray yet has no mark: after a sudden end, the cluster
# has ended when this many scans in a row find no process.
SCANS = 8
SCAN_SECONDS = 0.1


def marked(mark: str) -> Iterator[psutil.Process]:
    """Yield the processes of Ray that have a mark.

    Threads of the program can start other processes while the mark is set. Those are none of Ray: they lack the number
    of a raylet, and a folder of Ray in their command.

    >>> list(marked("none has this one"))
    []
    """
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            environment = process.environ()
            if environment.get(MARK) != mark or process.status() == psutil.STATUS_ZOMBIE:
                continue
            raylet = environment.get("RAY_RAYLET_PID")
            if raylet != os.environ.get("RAY_RAYLET_PID") or "/session_" in " ".join(process.cmdline()):
                yield process


def kill_marked(mark: str, scans: int) -> None:
    """Kill the processes that have a mark, until this many scans in a row find none."""
    until, empty = time.monotonic() + LIMIT_SECONDS, 0
    while time.monotonic() < until:
        found = list(marked(mark))
        for process in found:
            with suppress(psutil.Error):
                process.kill()
        empty = 0 if found else empty + 1
        if empty == scans:
            return
        time.sleep(SCAN_SECONDS)


def clear_session(folder: Path) -> None:
    """Delete the sockets and the spilled objects in the folder of a cluster that has ended, and keep its logs."""
    for each in (folder / "sockets", *folder.glob("ray_spilled_objects*")):
        shutil.rmtree(each, ignore_errors=True)


def main(program: int, mark: str) -> None:
    """Wait for the end of the program or of the cluster, and remove what is left.

    The program sends the folder of the cluster's session when it knows it. The end of the program is seen by the number
    of the parent process: a process that the program has forked can hold the pipe open.
    """
    folder, stopped, alone = "", False, False
    while not stopped and not alone:
        alone = os.getppid() != program  # Asked before the pipe is read, so that no message is missed.
        if select.select([sys.stdin], [], [], 0 if alone else POLL_SECONDS)[0]:
            message = os.read(sys.stdin.fileno(), 4096)
            stopped = not message or message.endswith(END)
            folder = os.fsdecode(message.rstrip(END)) or folder
    kill_marked(mark, 1 if stopped and os.getppid() == program else SCANS)
    if folder:
        clear_session(Path(folder))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
