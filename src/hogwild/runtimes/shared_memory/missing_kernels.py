"""Seconds of training that kernels have cost which were not compiled, over all processes that share the cache.

A short run ends before a kernel that it lacks would be compiled, and the next process lacks it again. So the seconds
are kept beside the place of the kernel's machine code, and the kernel is compiled when they add up.
"""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

from hogwild.files import write_file
from hogwild.jit import index_file

MOST_BYTES = 64  # of a number in a file; what is longer was written by something else

_in_this_process: defaultdict[Any, float] = defaultdict(float)
_on_disk: dict[Any, float] = {}


def seconds_without(kernel: Any) -> float:
    """Return the seconds that were trained without a kernel, by this process and by those before it."""
    if kernel not in _on_disk:
        _on_disk[kernel] = _read(_file_of(kernel))
    return _on_disk[kernel] + _in_this_process[kernel]


def count_seconds(kernel: Any, seconds: float) -> None:
    """Add seconds that were trained without a kernel."""
    _in_this_process[kernel] += seconds


def keep_seconds(kernel: Any) -> None:
    """Keep the sum for the next processes. It is an estimate: of two processes that end together, one may be lost."""
    file = _file_of(kernel)
    if file is None:
        return
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, f"{seconds_without(kernel):.3f}".encode())


def _file_of(kernel: Any) -> Path | None:
    index = index_file(kernel)
    return None if index is None else index.with_suffix(".seconds")


def _read(file: Path | None) -> float:
    if file is None:
        return 0.0
    try:
        with file.open() as stream:
            found = float(stream.read(MOST_BYTES))
    except (OSError, ValueError):  # Nothing was kept, or it is damaged.
        return 0.0
    return found if math.isfinite(found) and found > 0 else 0.0
