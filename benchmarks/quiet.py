"""Whether the machine is quiet: times on one that does other work are not to be relied on."""

from __future__ import annotations

import os

import psutil

SECONDS, TURNS = 2.0, 10  # a sample; the number of samples before one gives up
LIMIT = 0.25  # cores that others may keep at work


class BusyError(RuntimeError):
    """Other processes keep the machine at work."""


def cores_at_work(seconds: float = SECONDS) -> float:
    """How many cores of the machine all processes together use.

    The load average cannot tell: it forgets within minutes what has ended long ago, and counts who waits for a disk.
    """
    return psutil.cpu_percent(seconds) / 100 * (psutil.cpu_count() or 1)


def state(*, anyway: bool = False) -> str:
    """What a table says about the machine before the start, once it is quiet; BusyError if it stays busy."""
    for _ in range(TURNS):
        busy = cores_at_work()
        load = f"{busy:.2f} cores at work and load {os.getloadavg()[0]:.1f} before the start"
        if busy <= LIMIT:
            return f"quiet: {load}"
        if anyway:
            return f"busy with other work, so that times are not to be relied on: {load}"
    raise BusyError(
        f"Other work keeps {busy:.2f} cores busy, and {LIMIT} are the most with which times can be relied on. "
        "End it, or measure with --busy: the table will say so."
    )
