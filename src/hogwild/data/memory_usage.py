"""Memory of this process in use, and memory available to it."""

from __future__ import annotations

import ctypes
import mmap
from pathlib import Path

# Files with the limit and the usage of Linux control groups (containers, batch systems): version 2, then version 1.
_GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def resident_bytes() -> int:
    """Return the number of bytes of memory that are resident in this process.

    >>> resident_bytes() > 2**20
    True
    """
    import psutil

    return int(psutil.Process().memory_info().rss)


def release_pages() -> None:
    """Release the pages of program code.

    The process does not need most of these pages again, such as those of the compiler. The pages are unchanged parts of
    files, so the next call into one of them finds it in the page cache of the system.

    >>> release_pages()
    """
    if not hasattr(mmap, "MADV_DONTNEED"):
        return
    try:
        mapped = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return  # The system is not Linux.
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for words in (line.split(maxsplit=5) for line in mapped):
        if len(words) == 6 and words[1] == "r-xp" and words[5].startswith("/"):
            start, stop = (int(address, 16) for address in words[0].split("-"))
            advise(start, stop - start, mmap.MADV_DONTNEED)


def available_bytes() -> int:
    """Return the number of bytes that this process can still take without swapping and without being killed.

    >>> available_bytes() > 0
    True
    """
    import psutil

    return max(0, min([int(psutil.virtual_memory().available), *_left_in_groups()]))


def _left_in_groups() -> list[int]:
    left = []
    for limit, used in _GROUPS:
        try:
            # The usage includes cached files, which the system drops first. The result is therefore never
            # too large. It is too small by a relevant amount only in a group that is nearly full.
            left.append(int(Path(limit).read_text()) - int(Path(used).read_text()))
        except (OSError, ValueError):
            continue  # There is no such group, or it has no limit ("max").
    return left
