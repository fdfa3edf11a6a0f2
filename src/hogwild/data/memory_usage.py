"""How much memory this process uses, and how much there is."""

from __future__ import annotations

import ctypes
import mmap
from pathlib import Path

# Where Linux control groups (containers, batch systems) keep their limit and their use; version 2, then 1.
_GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def resident_bytes() -> int:
    """How many bytes of memory this process holds now.

    >>> resident_bytes() > 2**20
    True
    """
    import psutil

    return int(psutil.Process().memory_info().rss)


def release_pages() -> None:
    """Let the pages of program code go: most, such as the compiler's, are not needed again, and others come back.

    They are unchanged parts of files, so the next call into them finds them in the system's cache.

    >>> release_pages()
    """
    if not hasattr(mmap, "MADV_DONTNEED"):
        return
    try:
        mapped = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return  # not Linux
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for words in (line.split(maxsplit=5) for line in mapped):
        if len(words) == 6 and words[1] == "r-xp" and words[5].startswith("/"):
            start, stop = (int(address, 16) for address in words[0].split("-"))
            advise(start, stop - start, mmap.MADV_DONTNEED)


def available_bytes() -> int:
    """How many bytes this process could still take without swapping or being killed.

    >>> available_bytes() > 0
    True
    """
    import psutil

    return max(0, min([int(psutil.virtual_memory().available), *_left_in_groups()]))


def _left_in_groups() -> list[int]:
    left = []
    for limit, used in _GROUPS:
        try:
            # What is used includes cached files, which would go first: the error is on the safe side only nearly full.
            left.append(int(Path(limit).read_text()) - int(Path(used).read_text()))
        except (OSError, ValueError):
            continue  # no such group, or no limit ("max")
    return left
