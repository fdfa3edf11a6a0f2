"""A disk that is full from some operation on: files that are written in this process fail at the n-th write."""

from __future__ import annotations

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Disk:
    """Counter of the operations that need room on the disk."""

    def __init__(self, fails_at: int) -> None:
        self.count, self.fails_at = 0, fails_at

    def need_room(self, *path: object) -> None:
        """Fail if the disk is full. Without a path, as a write to an open file, all calls after the n-th fail too."""
        self.count += 1
        if self.count == self.fails_at or (self.count > self.fails_at and not path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), *path)


@contextmanager
def full_disk(fails_at: int) -> Iterator[Disk]:
    """Make the n-th of all writes, flushes to the disk, new folders and renamings fail, and all writes after it."""
    disk = Disk(fails_at)

    class FaultyFile(io.FileIO):
        def write(self, data: Any) -> int:
            disk.need_room()
            return super().write(data)

    opens, flushes, names = [(io, "open"), (builtins, "open")], [(os, "fsync")], ("mkdir", "rename", "replace")
    given = {(module, name): getattr(module, name) for module, name in [*opens, *flushes, *((os, n) for n in names)]}
    plain = given[io, "open"]

    def opened(file: Any, mode: str = "r", buffering: int = -1, encoding: Any = None, errors: Any = None,
               newline: Any = None, closefd: bool = True, opener: Any = None) -> Any:  # fmt: skip
        if not set(mode) & set("wax+"):
            return plain(file, mode, buffering, encoding, errors, newline, closefd, opener)
        raw = FaultyFile(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        buffered = io.BufferedWriter(raw, buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding or "utf-8", errors, newline)

    def needing_room(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            disk.need_room(*(() if function is given[os, "fsync"] else (str(arguments[0]),)))
            return function(*arguments, **options)

        return called

    try:
        for (module, name), function in given.items():
            setattr(module, name, opened if name == "open" else needing_room(function))
        yield disk
    finally:
        for (module, name), function in given.items():
            setattr(module, name, function)


def failing_at_every_write(write: Callable[[], object], check: Callable[[BaseException], None]) -> int:
    """Call a function with a disk that is full from the first write on, from the second, and so on until it succeeds.

    ``check`` is called with each error, with a disk that has room again. The number of failures is returned.
    """
    fails_at = 0
    while True:
        fails_at += 1
        assert fails_at < 2_000
        raised: BaseException | None = None
        with full_disk(fails_at) as disk:
            try:
                write()
            except Exception as error:
                raised = error
        if raised is None:
            assert disk.count < fails_at, "a write failed, and nobody noticed"
            return fails_at - 1
        check(raised)
