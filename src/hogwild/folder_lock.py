"""Lock of a folder: one process writes to it at a time, and others learn which one it is.

The lock is one of the system (flock), which ends with its process however that ends. The file of the lock says who has
it. Where the file system has no such locks, the process that the file names counts as the holder as long as it runs.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

import psutil

from hogwild.errors import CheckpointError, ParameterError
from hogwild.files import check_folder
from hogwild.process_start import process_start

LOCK = ".lock"
# Seconds that a lock may outlive its process: children that were copied from it have the lock until they end.
ATTEMPTS = 20  # to take the lock of a folder that others create and remove
ORPHAN_SECONDS = 10.0
_POLL_SECONDS = 0.05
_NO_LOCKS = (errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@dataclass(frozen=True, slots=True)
class Holder:
    """Process that has a lock."""

    pid: int
    host: str
    started: str  # start of the process, because numbers of processes are used again
    since: str

    @property
    def is_alive(self) -> bool:
        """Whether the process may run: one on another machine always may."""
        if self.host != socket.gethostname():
            return True
        try:
            return process_start(self.pid) == self.started
        except psutil.NoSuchProcess:
            return False
        except (psutil.Error, OSError):
            return True

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder within the block; the folder is created if necessary, and removed if it stays empty.

    Raises
    ------
    CheckpointError
        If another process, or another thread of this one, holds the lock.
    ParameterError
        If nothing can be written to the folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     with folder_lock(Path(parent, "points")):
    ...         [path.name for path in Path(parent, "points").iterdir()]
    ['.lock']
    """
    is_new = not folder.exists()
    descriptor = _taken(folder)
    try:
        yield
    finally:
        with suppress(OSError):
            (folder / LOCK).unlink()
        os.close(descriptor)
        with suppress(OSError):
            if is_new:
                folder.rmdir()


def _taken(folder: Path) -> int:
    """Create the folder and take its lock; try again if a holder has removed the empty folder in between."""
    for _ in range(ATTEMPTS):
        with suppress(ParameterError, FileNotFoundError):
            check_folder(folder)
            return _locked(folder)
    check_folder(folder)
    return _locked(folder)


def _locked(folder: Path) -> int:
    """Return the descriptor of the file of the lock, which is held as long as the descriptor is open."""
    path, end = folder / LOCK, time.monotonic() + ORPHAN_SECONDS
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            is_free = _flock(descriptor)
            # The holder before removes the file. A lock of a removed file has no effect.
            if is_free is not False and not _is_at(descriptor, path):
                os.close(descriptor)
                continue
            holder = _holder(descriptor)
            if is_free is None:
                is_free = holder is None or not holder.is_alive
            if is_free:
                _write_holder(descriptor)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if holder is None or holder.is_alive or time.monotonic() >= end:
            raise CheckpointError(
                f"{folder}: another run writes to this folder ({holder or 'a process that gives no name'}). "
                "Wait for its end, or choose another folder."
            )
        time.sleep(_POLL_SECONDS)


def _flock(descriptor: int) -> bool | None:
    """Return whether the lock of the system was free, and is held now; None if the file system has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return None
        raise
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _holder(descriptor: int) -> Holder | None:
    """Return the process that the file names; None if the file is empty or cannot be understood."""
    try:
        found = json.loads(os.pread(descriptor, 2**12, 0))
        return Holder(int(found["pid"]), str(found["host"]), str(found["started"]), str(found["since"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _write_holder(descriptor: int) -> None:
    since = datetime.now().astimezone().isoformat(" ", "seconds")
    holder = Holder(os.getpid(), socket.gethostname(), process_start(), since)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(asdict(holder)).encode(), 0)
