"""Description of this machine: cores, caches, vector units and memory, and the share of each that a process may use."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import platform
import re
import resource
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

ROOT = Path("/")
LITTLE_BYTES = 2**26  # to query the free memory takes longer than to allocate less than this
MOST_WORKERS = 4096  # Threads, processes or actors of one run: more would take minutes to start, and gigabytes.
MOST_SIMULATED_WORKERS = 100_000  # Workers of one simulated run, which take some kilobytes each.

# LLVM's names of the vector instruction sets that are reported.
VECTOR_SETS = ("sse4.2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "neon", "sve", "sve2", "rvv")


@dataclass(frozen=True, slots=True)
class Cache:
    """Processor cache, as one core sees it."""

    level: int
    kind: str  #    "data", "instruction" or "unified"
    size: int  #    bytes
    shared: int  #  number of logical cores that share the cache


@dataclass(frozen=True, slots=True)
class Machine:
    """Resources of a machine that this process may use."""

    system: str
    processor: str
    logical_cores: int
    physical_cores: int | None
    allowed_cores: int  #       logical cores that this process may run on (affinity)
    quota: float | None  #      CPU quota of the control group, in cores; None: no limit
    memory: int  #              bytes of physical memory
    available: int  #           bytes that can be allocated now, which control groups may limit
    memory_limit: int | None  # bytes that the control group allows; None: no limit
    caches: tuple[Cache, ...]
    cache_line: int | None
    numa_nodes: int
    vectors: tuple[str, ...]

    @property
    def usable_cores(self) -> int:
        """The number of threads that can run at the same time: the allowed cores, or fewer with a quota.

        >>> this_machine().usable_cores >= 1
        True
        """
        return _within(self.allowed_cores, self.quota)

    @property
    def usable_memory(self) -> int:
        """The number of bytes that this process can allocate now."""
        return self.available if self.memory_limit is None else min(self.available, self.memory_limit)


def this_machine() -> Machine:
    """Return a description of this machine.

    >>> machine = this_machine()
    >>> machine.logical_cores >= machine.allowed_cores >= 1 and machine.memory > machine.available > 0
    True
    """
    import psutil

    memory = psutil.virtual_memory()
    return Machine(
        system=f"{platform.system()} {platform.release()}, {platform.machine()}",
        processor=processor_name(),
        logical_cores=os.cpu_count() or 1,
        physical_cores=psutil.cpu_count(logical=False),
        allowed_cores=allowed_cores(),
        quota=cpu_quota(ROOT),
        memory=memory.total,
        available=available_bytes(),
        memory_limit=memory_limit(memory.total),
        caches=caches(),
        cache_line=_number(_cpu0(ROOT) / "cache/index0/coherency_line_size"),
        numa_nodes=numa_nodes(),
        vectors=vectors(),
    )


def usable_cores() -> int:
    """Return the number of threads of this process that can run at the same time.

    CPU affinity and the quota of the control group limit this number. The package uses it as the default number of
    workers, threads and readers.

    >>> usable_cores() == this_machine().usable_cores
    True
    """
    return _within(allowed_cores(), _quota_during(int(time.monotonic())))


@lru_cache(maxsize=1)
def _quota_during(second: int) -> float | None:
    """Return the quota as of a second; reading it takes longer than many a call that needs it."""
    return cpu_quota(ROOT)


def _within(allowed: int, quota: float | None) -> int:
    return allowed if quota is None else max(1, min(allowed, int(quota)))


def allowed_cores() -> int:
    """Return the number of logical cores that this process may run on.

    >>> allowed_cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread_over_cores(worker: int) -> None:
    """Move this thread to a core of its own, and then allow all cores again.

    Threads that wake up together often wake up on the same core. A scheduler that balances the load only every few
    milliseconds leaves them there for as long as an epoch takes.
    """
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        if len(allowed) > 1:
            with contextlib.suppress(OSError):  # The placement only saves time; training works without it.
                os.sched_setaffinity(0, {allowed[worker % len(allowed)]})
                os.sched_setaffinity(0, allowed)


def processor_name(root: Path = ROOT) -> str:
    """Return the model name of the processor.

    >>> processor_name() != ""
    True
    """
    for line in _text(root / "proc/cpuinfo").splitlines():
        if line.startswith(("model name", "Hardware", "cpu model")):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or "unknown"


def cpu_quota(root: Path = ROOT) -> float | None:
    """Return the smallest CPU quota of this process's control groups, in cores; None without a quota."""
    granted = []
    for folder in _control_groups(root, ""):  # Control groups of version 2
        limit, _, period = _text(folder / "cpu.max").partition(" ")
        if limit.isdigit() and period.strip().isdigit():
            granted.append(int(limit) / int(period))
    for folder in _control_groups(root, "cpu"):  # Control groups of version 1
        limit1, period1 = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
        if limit1 is not None and limit1 > 0 and period1:
            granted.append(limit1 / period1)
    return min(granted, default=None)


def memory_limit(total: int, root: Path = ROOT) -> int | None:
    """Return the smallest memory limit of this process's control groups, in bytes; None if none is below ``total``."""
    limits = [_number(folder / "memory.max") for folder in _control_groups(root, "")]
    limits += [_number(folder / "memory.limit_in_bytes") for folder in _control_groups(root, "memory")]
    return min((limit for limit in limits if limit is not None and 0 < limit < total), default=None)


def caches(root: Path = ROOT) -> tuple[Cache, ...]:
    """List the caches of the first core, the one of the lowest level first."""
    found = []
    for folder in sorted((_cpu0(root) / "cache").glob("index*")):
        level, size = _number(folder / "level"), _text(folder / "size").strip()
        kind = _text(folder / "type").strip().lower()
        if level is not None and size[:-1].isdigit() and size[-1] in "KMG":
            amount = int(size[:-1]) * {"K": 2**10, "M": 2**20, "G": 2**30}[size[-1]]
            found.append(Cache(level, kind, amount, _count_list(_text(folder / "shared_cpu_list"))))
    return tuple(sorted(found, key=lambda cache: (cache.level, cache.kind)))


def numa_nodes(root: Path = ROOT) -> int:
    """Return the number of NUMA nodes; at least 1."""
    return max(1, len(list((root / "sys/devices/system/node").glob("node[0-9]*"))))


def vectors() -> tuple[str, ...]:
    """List the vector instruction sets that compiled code uses on this machine."""
    import llvmlite.binding

    has = llvmlite.binding.get_host_cpu_features()
    return tuple(name for name in VECTOR_SETS if has.get(name))


def _control_groups(root: Path, controller: str) -> list[Path]:
    """List the folders of this process's control group and of its ancestors, outermost first.

    ``controller`` is empty for version 2, where one tree has all controllers. Folders that are not visible to this
    process are listed as well; reading from them gives no limit.
    """
    mount = root / "sys/fs/cgroup" / controller
    folders = [mount]
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, names, path, *_ = [*line.split(":", 2), "", ""]
        if controller in names.split(","):
            for part in Path(path.lstrip("/")).parts:
                folders.append(folders[-1] / part)
            break
    return folders


def _cpu0(root: Path) -> Path:
    return root / "sys/devices/system/cpu/cpu0"


def _count_list(text: str) -> int:
    """Count the numbers in a list such as ``0-3,8``."""
    total = 0
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            total += int(last or first) - int(first) + 1
    return total


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # The file does not exist on this system, or cannot be read by this process.
        return ""


def _number(path: Path) -> int | None:
    try:
        return int(_text(path))
    except ValueError:
        return None


# Controller, files with the limit and the usage, and prefix of the names in ``memory.stat``: of Linux control groups
# (containers, batch systems) of version 2, then of version 1.
_MEMORY_FILES = (
    ("", "memory.max", "memory.current", ""),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
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


def too_little_memory(needed: int) -> int | None:
    """Return the number of bytes that can be allocated now if they are fewer than needed; None if they suffice.

    >>> too_little_memory(2**20), too_little_memory(2**62) is None
    (None, False)
    """
    if needed <= LITTLE_BYTES:
        return None
    room = available_bytes()
    return room if needed > room else None


def available_bytes(root: Path = ROOT) -> int:
    """Return the number of bytes that this process can still take without swapping and without being killed.

    Control groups limit this number: what their processes use already is not available. Limits of the process (``ulimit
    -v`` and ``ulimit -d``) count as well.

    >>> available_bytes() > 0
    True
    """
    import psutil

    return max(0, min([int(psutil.virtual_memory().available), *_left_in_groups(root), *_left_in_limits(root)]))


def recently_available_bytes() -> int:
    """Return :func:`available_bytes` as of the present second; asking the system takes half a millisecond.

    >>> recently_available_bytes() > 0
    True
    """
    return _available_during(int(time.monotonic()))


@lru_cache(maxsize=1)
def _available_during(second: int) -> int:
    return available_bytes()


def swap_bytes(root: Path = ROOT) -> int:
    """Return the number of bytes of swap space that this process can still take.

    A control group of version 1 with a limit on memory counts as one without swap.

    >>> swap_bytes() >= 0
    True
    """
    import psutil

    groups = _control_groups(root, "")
    limits = [(_number(folder / "memory.swap.max"), _number(folder / "memory.swap.current")) for folder in groups]
    left = [limit - used for limit, used in limits if limit is not None and used is not None]
    memory = psutil.virtual_memory().total
    first = [_number(folder / "memory.limit_in_bytes") for folder in _control_groups(root, "memory")]
    if any(limit is not None and 0 < limit < memory for limit in first):
        left.append(0)
    return max(0, min([int(psutil.swap_memory().free), *left]))


def _left_in_groups(root: Path) -> list[int]:
    """List the bytes that each control group of this process leaves; groups without a limit are left out.

    The usage of a group includes cached files. The system drops those first, so they count as available.
    """
    left = []
    for controller, limit, usage, prefix in _MEMORY_FILES:
        for folder in _control_groups(root, controller):
            allowed, used = _number(folder / limit), _number(folder / usage)
            if allowed is not None and used is not None:
                left.append(allowed - max(0, used - _cached_files(folder, prefix)))
    return left


def _left_in_limits(root: Path) -> list[int]:
    """List the bytes that each limit of this process leaves: of its addresses, and of its data."""
    left = []
    for limit, name in ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")):
        allowed = resource.getrlimit(limit)[0]
        if allowed != resource.RLIM_INFINITY:
            used = re.search(rf"{name}:\s+(\d+) kB", _text(root / "proc/self/status"))
            left.append(allowed - (1024 * int(used[1]) if used else 0))
    return left


def _cached_files(folder: Path, prefix: str) -> int:
    """Return the bytes of cached files of a control group. Shared memory is not among them."""
    names = (f"{prefix}inactive_file", f"{prefix}active_file")
    pairs = (line.split() for line in _text(folder / "memory.stat").splitlines())
    return sum(int(pair[1]) for pair in pairs if len(pair) == 2 and pair[0] in names and pair[1].isdigit())
