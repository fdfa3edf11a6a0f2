"""Lines of a file that another program appends to, or of a pipe, as they come.

A line is handed out when its end is there. A file that is cut, replaced or rewritten while it is followed is an error:
the bytes before the present position, which were handed out, must stay as they were.
"""

from __future__ import annotations

import os
import select
import stat
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hogwild.data.compression import compression_of
from hogwild.data.readers.line_segments import Segment
from hogwild.data.remote import is_remote
from hogwild.data.streams import STDIN, opened
from hogwild.data.text_limits import TextLimits
from hogwild.errors import DataError, ParameterError

_BLOCK = 1 << 22  # Most bytes of a segment, unless one line is longer.
_TAIL = 256  # Bytes before the position that tell whether the file is still the same.
_POLL_SECONDS = 0.1
_MARK = b"\xef\xbb\xbf"
_AGAIN = "Start again, without --resume."


@dataclass(frozen=True, slots=True)
class FilePosition:
    """Position behind a line of a file, and the last bytes before it."""

    offset: int = 0
    lines: int = 0
    tail: bytes = b""


class FollowedLines:
    """Lines of a file or a pipe, from a position on.

    Parameters
    ----------
    source : str
        A path, or ``"-"`` for standard input.
    start : FilePosition, optional
        Where an earlier reader of the file has stopped. Of a pipe only the number of lines counts: what comes is new.
    limits : TextLimits, optional
        The longest line.
    seconds : float, optional
        How long to wait for a program that writes to a pipe, if that is less than what others wait.

    Raises
    ------
    DataError
        If the file cannot be read, is compressed, or is not the one that ``start`` belongs to.
    ParameterError
        If the file is a remote one.
    """

    def __init__(
        self, source: str, start: FilePosition | None = None, limits: TextLimits | None = None,
        seconds: float | None = None,
    ) -> None:  # fmt: skip
        if is_remote(source):
            raise ParameterError("Remote files cannot be followed, because they do not grow: leave out --follow.")
        self.name = "standard input" if source == STDIN else source
        self.path = Path(self.name)
        self.position = start or FilePosition()
        self.ended = False  # whether nothing more can come
        self._limits, self._held = limits or TextLimits(), b""
        self._descriptor = os.dup(0) if source == STDIN else self._open(Path(source), seconds)
        self._is_file = stat.S_ISREG(os.fstat(self._descriptor).st_mode)
        try:
            self._check_start()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def __enter__(self) -> FollowedLines:
        """Return these lines."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def next(self, seconds: float) -> Segment | None:
        """Return the next whole lines; None if none comes within these seconds, or ever.

        Raises
        ------
        DataError
            If the file has changed otherwise than by growing, or if a line is too long.
        """
        end = time.monotonic() + seconds
        while True:
            block = self._read(max(0.0, end - time.monotonic()))
            if block:
                segment = self._lines(block)
                if segment is not None:
                    return segment
            elif self.ended:
                return self._last()
            elif time.monotonic() >= end:
                return None

    def _read(self, seconds: float) -> bytes:
        """Return new bytes; wait for them no longer than a moment."""
        try:
            if not self._is_file:
                waiting = select.poll()
                waiting.register(self._descriptor, select.POLLIN | select.POLLHUP)
                if not waiting.poll(1000 * min(seconds, _POLL_SECONDS)):
                    return b""
                block = os.read(self._descriptor, _BLOCK)
                self.ended = not block
                return block
            self._check_unchanged()
            block = os.pread(self._descriptor, _BLOCK, self.position.offset + len(self._held))
            if not block and seconds > 0:
                self._check_is_there()
                time.sleep(min(seconds, _POLL_SECONDS))
        except OSError as error:
            raise self._error(f"it cannot be read ({error.strerror})", "Check the disk.") from None
        return block

    def _lines(self, block: bytes) -> Segment | None:
        text = self._held + block
        stop = text.rfind(b"\n") + 1
        if stop == 0:
            self._limits.check_line(Path(self.name), self.position.lines + 1, len(text))
        self._held = text[stop:]
        return self._handed_out(text[:stop]) if stop else None

    def _last(self) -> Segment | None:
        """Return the last line of a pipe, which may have no end."""
        text, self._held = self._held, b""
        return self._handed_out(text + b"\n") if text.strip() else None

    def _handed_out(self, text: bytes) -> Segment:
        before = self.position
        tail = (before.tail + text)[-_TAIL:]
        self.position = FilePosition(before.offset + len(text), before.lines + text.count(b"\n"), tail)
        if before.offset == 0:
            if compression_of(text):
                raise self._error("compressed data cannot be followed", "Unpack it into a pipe: zcat FILE | ... -")
            text = text.removeprefix(_MARK)
        return Segment(np.frombuffer(text, np.uint8), before.lines + 1)

    def _open(self, path: Path, seconds: float | None) -> int:
        try:
            mode = path.stat().st_mode
            if stat.S_ISDIR(mode):
                raise self._error("this is a folder", "Name a file that grows, or a pipe.")
            if stat.S_ISREG(mode):
                return os.open(path, os.O_RDONLY)
            return opened(path, seconds)
        except FileNotFoundError:
            raise self._error("there is no such file", "Create it, or check the path.") from None
        except OSError as error:
            raise self._error(f"it cannot be opened ({error.strerror})", "Check its permissions.") from None

    def _check_start(self) -> None:
        if not self._is_file:
            self.position = FilePosition(0, self.position.lines)
            return
        first = os.pread(self._descriptor, 10, 0)
        if compression_of(first):
            raise self._error("a compressed file cannot be followed", "Unpack it into a pipe: zcat FILE | ... -")
        if self.position.offset:
            self._check_unchanged()

    def _check_unchanged(self) -> None:
        size, read = os.fstat(self._descriptor).st_size, self.position.offset + len(self._held)
        if size < read:
            raise self._error(f"it was cut to {size:,} bytes, of which {read:,} had been read", _AGAIN)
        tail = self.position.tail
        if tail and os.pread(self._descriptor, len(tail), self.position.offset - len(tail)) != tail:
            raise self._error(f"the bytes before {self.position.offset:,}, which had been read, are others now", _AGAIN)

    def _check_is_there(self) -> None:
        """Raise an error if the file has lost its name, because its writer goes on in another file."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            raise self._error("it was removed", "Follow the file that is written now, without --resume.") from None
        if not os.path.samestat(found, os.fstat(self._descriptor)):
            raise self._error("another file has taken its place", "Follow that one, without --resume.")

    def _error(self, what: str, remedy: str) -> DataError:
        return DataError(what, path=self.name, remedy=remedy)
