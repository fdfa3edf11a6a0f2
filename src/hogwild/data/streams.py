"""Streams as data: standard input, named pipes and devices, which can be read only once.

The first bytes of a stream tell its format. A reader that opens its file once gets the rest through a pipe; for others
the stream is written to a private temporary file.
"""

from __future__ import annotations

import os
import select
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hogwild.data.format_detection import SNIFFED, tells_format
from hogwild.errors import DataError
from hogwild.files import appending_bytes

STDIN = "-"
WRITER_SECONDS = 60.0  # Longest wait for a program that writes to a named pipe.
_BLOCK = 2**20


def is_stream(source: str | os.PathLike[str]) -> bool:
    """Return whether a source is standard input, a pipe or a device.

    >>> is_stream("-"), is_stream("/dev/null"), is_stream("/tmp")
    (True, True, False)
    """
    if source == STDIN:
        return True
    try:
        mode = Path(source).stat().st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


class Stream:
    """Open stream, of which the first bytes are known.

    Parameters
    ----------
    source : str or Path
        ``"-"`` for standard input, or a path.

    Raises
    ------
    DataError
        If nothing comes.
    """

    def __init__(self, source: str | os.PathLike[str]) -> None:
        self.name = "standard input" if source == STDIN else str(source)
        self.path = Path(self.name)  # for messages, and for its ending
        self._descriptor = os.dup(0) if source == STDIN else opened(Path(source))
        try:
            self.first = self._first_bytes()
        except BaseException:
            self.close()
            raise
        if not self.first:
            self.close()
            raise DataError(
                "nothing came before its end", path=self.name, remedy="Check the program that writes to it."
            )

    def close(self) -> None:
        """Close the stream."""
        with suppress(OSError):
            os.close(self._descriptor)

    def __enter__(self) -> Stream:
        """Return the stream."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the stream."""
        self.close()

    def _first_bytes(self) -> bytes:
        """Read until the first line is there, which tells the format."""
        first = b""
        while len(first) < SNIFFED and not tells_format(first):
            block = self._read()
            if not block:
                break
            first += block
        return first

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, _BLOCK)
        except OSError as error:
            what = f"it cannot be read ({error.strerror})"
            raise DataError(what, path=self.name, remedy="Check the program that writes to it.") from None

    def blocks(self) -> Iterator[bytes]:
        """Yield the whole stream as it comes."""
        yield self.first
        yield from iter(self._read, b"")

    @contextmanager
    def piped(self) -> Iterator[Path]:
        """Yield the path of a pipe that has the whole stream, to be opened once within the block."""
        reading, writing = os.pipe()
        errors: list[DataError] = []

        def feed() -> None:
            try:
                for block in self.blocks():
                    view = memoryview(block)
                    while view:
                        view = view[os.write(writing, view) :]
            except OSError:  # The reader has left.
                pass
            except DataError as error:
                errors.append(error)
            finally:
                os.close(writing)

        feeder = threading.Thread(target=feed, name="hogwild-feeds", daemon=True)
        feeder.start()
        try:
            yield Path(f"/dev/fd/{reading}")
        finally:
            os.close(reading)
        if errors:
            raise errors[0]

    @contextmanager
    def spooled(self) -> Iterator[Path]:
        """Yield the path of a private file with the whole stream, which is removed at the end of the block."""
        with tempfile.TemporaryDirectory(prefix="hogwild-") as folder:
            path = Path(folder, self.path.name)
            with appending_bytes(path) as file:
                for block in self.blocks():
                    file.write(block)
            yield path


def opened(path: Path, at_most: float | None = None) -> int:
    """Return the descriptor of a pipe or a device as soon as a program writes to it, ``WRITER_SECONDS`` at most."""
    seconds = WRITER_SECONDS if at_most is None else min(at_most, WRITER_SECONDS)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        raise DataError(f"it cannot be opened ({error.strerror})", path=path, remedy="Check it.") from None
    try:
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            waiting = select.poll()
            waiting.register(descriptor, select.POLLIN | select.POLLHUP)
            if not waiting.poll(1000 * seconds):
                what = f"no program has written to this pipe within {seconds:g} seconds"
                raise DataError(what, path=path, remedy="Start the program that does, or name a file.")
        os.set_blocking(descriptor, True)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
