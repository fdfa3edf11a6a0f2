"""How much memory this process uses, and how much there is."""

from __future__ import annotations

from pathlib import Path

# Where Linux control groups (containers, batch systems) keep their limit and their use; version 2, then 1.
_GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def resident() -> int:
    """How many bytes of memory this process holds now.

    >>> resident() > 2**20
    True
    """
    import psutil

    return int(psutil.Process().memory_info().rss)


def available() -> int:
    """How many bytes this process could still take without swapping or being killed.

    >>> available() > 0
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
