"""Start of a process, by which it is known: the system uses the number of a process that has ended again."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil


def process_start(pid: int | None = None) -> str:
    """Return what tells a process from all others that have had its number, by default this process.

    On Linux it is the boot of the machine, and the ticks from then to the start of the process. The time of day would
    not do: when the clock is set, the system counts all starts from another moment.

    Raises
    ------
    psutil.NoSuchProcess
        If there is no process of this number.

    Examples
    --------
    >>> process_start() == process_start(os.getpid())
    True
    """
    pid = os.getpid() if pid is None else pid
    if not sys.platform.startswith("linux"):
        return f"{psutil.Process(pid).create_time():.0f}"
    try:
        said = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        raise psutil.NoSuchProcess(pid) from None
    # The name of the program, in brackets, may have spaces and brackets of its own.
    ticks = said.rpartition(")")[2].split()[19]
    return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {ticks}"
