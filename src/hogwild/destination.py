"""Destinations of output: what is at a path, and whether it is replaced or written to as a stream.

A link stands for its target. A regular file is replaced by a new one. A device, a named pipe or a descriptor of this
process, such as ``/dev/stdout``, is a stream: it is written to, and the name keeps its kind. A folder or a socket is
refused.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from hogwild.errors import ParameterError

READER_SECONDS = 60.0  # seconds that a writer waits for a program that reads from a named pipe
_POLL_SECONDS = 0.02
_MOST_LINKS = 40  # links in a row that Linux follows
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+://")


@dataclass(frozen=True, slots=True)
class Destination:
    """Place where output goes.

    Parameters
    ----------
    path : Path
        Path that the user has given.
    target : Path
        Path behind all links.
    stream : bool
        Whether bytes are written to what is there, instead of to a new file that replaces it.
    descriptor : int, optional
        Descriptor of this process that the path stands for.
    """

    path: Path
    target: Path
    stream: bool = False
    descriptor: int | None = None

    def open(self) -> BinaryIO:
        """Open a stream for writing.

        Raises
        ------
        ParameterError
            If no program reads from a named pipe within 60 seconds.
        """
        if self.descriptor is not None:
            # Text that was printed before stays before what is written now.
            for standard in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError, AttributeError):
                    standard.flush()
            return _stream(os.dup(self.descriptor))
        if stat.S_ISFIFO(self.path.stat().st_mode):
            return _stream(_open_pipe(self.path))
        return _stream(os.open(self.path, os.O_WRONLY | os.O_NOCTTY))


class _Unseekable(io.FileIO):
    """File whose writers must not go back: some devices let them, and are always at their beginning."""

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        raise io.UnsupportedOperation("a stream has no position")

    def seek(self, offset: int, whence: int = 0, /) -> int:
        raise io.UnsupportedOperation("a stream has no position")


def _stream(descriptor: int) -> BinaryIO:
    return io.BufferedWriter(_Unseekable(descriptor, "w"))


def destination_of(path: str | Path) -> Destination:
    """Return where output with this path goes.

    >>> destination_of("/dev/null").stream, destination_of("/tmp/no-such-file").stream
    (True, False)
    >>> destination_of("/tmp")
    Traceback (most recent call last):
        ...
    hogwild.errors.ParameterError: /tmp: this is a folder. Name a file in it.
    """
    path = named_path(path)
    with errors_name(path):
        descriptor = _own_descriptor(path)
        try:
            mode = path.stat().st_mode if descriptor is None else os.fstat(descriptor).st_mode
        except FileNotFoundError:  # a new file, or a link to one
            return Destination(path, Path(os.path.realpath(path)))
    if stat.S_ISDIR(mode):
        raise ParameterError(f"{path}: this is a folder. Name a file in it.")
    if descriptor is not None:
        return Destination(path, path, True, descriptor)
    if stat.S_ISREG(mode):
        return Destination(path, Path(os.path.realpath(path)))
    if stat.S_ISSOCK(mode):
        raise ParameterError(f"{path}: this is a socket, which cannot be written as a file. Choose another name.")
    return Destination(path, path, True)


def folder_target(path: str | Path) -> Path:
    """Return the path of a folder behind all links; anything else that has this name raises ``ParameterError``."""
    target = Path(os.path.realpath(named_path(path)))
    if target.exists() and not target.is_dir():
        raise ParameterError(f"{path}: this is not a folder. Remove it, or choose another name.")
    return target


def named_path(path: str | Path) -> Path:
    """Return a path; an empty one, which would be the working directory, or an address raises ``ParameterError``.

    >>> named_path("s3://bucket/model")
    Traceback (most recent call last):
        ...
    hogwild.errors.ParameterError: s3://...: this is an address, and outputs are written to this machine...
    """
    if path == "":
        raise ParameterError("The path to write to is empty. Name a file or a folder.")
    if isinstance(path, str) and (scheme := _ADDRESS.match(path)):
        # The rest may have a password.
        raise ParameterError(
            f"{scheme[0]}...: this is an address, and outputs are written to this machine. Name a file or a folder on "
            "this machine, and copy it afterwards."
        )
    return Path(path)


@contextmanager
def errors_name(path: str | Path, temporary: frozenset[str] | set[str] = frozenset()) -> Iterator[None]:
    """Make errors of the system name ``path`` if they name no file, or one of the ``temporary`` names.

    >>> with errors_name("model"):
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
        ...
    OSError: [Errno 28] No space left on device: 'model'
    """
    try:
        yield
    except OSError as error:
        named = error.filename
        if error.errno is None or (named is not None and temporary.isdisjoint(Path(os.fsdecode(named)).parts)):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def _own_descriptor(path: Path) -> int | None:
    """Return the descriptor of this process that a path such as ``/dev/stdout`` stands for, if it does."""
    pattern = re.compile(rf"/proc/{os.getpid()}(?:/task/\d+)?/fd/(\d+)")
    current = os.path.abspath(path)  # noqa: PTH100  (links must stay)
    for _ in range(_MOST_LINKS):
        current = str(Path(os.path.realpath(Path(current).parent), Path(current).name))
        match = pattern.fullmatch(current)
        if match is not None:
            return int(match[1])
        if not Path(current).is_symlink():
            return None
        current = os.path.join(Path(current).parent, os.readlink(current))  # noqa: PTH115, PTH118
    return None


def _open_pipe(path: Path) -> int:
    """Open a named pipe for writing as soon as a program reads from it."""
    end = time.monotonic() + READER_SECONDS
    while True:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        else:
            os.set_blocking(descriptor, True)
            return descriptor
        if time.monotonic() >= end:
            raise ParameterError(
                f"{path}: no program has opened this pipe for reading within {READER_SECONDS:.0f} seconds. "
                "Start its reader first, or name a file."
            )
        time.sleep(_POLL_SECONDS)
