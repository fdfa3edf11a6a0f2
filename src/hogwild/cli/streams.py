"""Standard streams of a command: closed, broken, full, or without the characters of a message.

- A stream that is closed when the command starts is the null device.
- What cannot be written to stderr is dropped. Messages never change what a command does, or its exit code.
- A command whose reader of stdout has left ends with 141, as programs do that the signal SIGPIPE ends.
- If stdout cannot be written for another reason, such as a full disk, that is an error with the exit code 1.
- A character that a stream cannot encode is written in ASCII.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import re
import sys
from typing import Any, TextIO

from hogwild.errors import HogwildError

BROKEN_PIPE_EXIT_CODE = 141  # 128 and the number of SIGPIPE.
STDOUT = "standard output"  # Name of stdout in errors.
ENCODING_ERRORS = "hogwild.ascii"  # Name of the handler of characters that a stream cannot encode.

_closed_at_start: set[int] = set()  # Numbers of the streams that were closed when the command started.
_ASCII = {"✓": "+", "✗": "x", "·": "-", "•": "*", "○": "o", "±": "+-", "│": "|", "─": "-", "…": "..."}


# Control characters, line separators, and characters that change the direction of writing.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


class ReaderGoneError(HogwildError):
    """Error of a stdout whose reader has left. It is no ``OSError``: typer and rich would end the program."""


def is_stdout(path: object) -> bool:
    """Return whether a path is the name of the stdout of this process.

    >>> is_stdout("/dev/stdout"), is_stdout("a.txt")
    (True, False)
    """
    return str(path) in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def stdout_was_closed() -> bool:
    """Return whether this process was started with a closed stdout."""
    return 1 in _closed_at_start


def open_streams() -> None:
    """Make stdout and stderr safe to write to; leave streams alone that a caller in Python has replaced."""
    _occupy_descriptors()
    if sys.stdout is None or _is_original(sys.stdout, sys.__stdout__, 1):
        sys.stdout = _text(_Stdout(1, "w", closefd=False), sys.stdout, line_buffering=False)
    if sys.stderr is None or _is_original(sys.stderr, sys.__stderr__, 2):
        sys.stderr = _text(_Stderr(2, "w", closefd=False), sys.stderr, line_buffering=True)


def discard_stdout() -> None:
    """Redirect stdout to the null device, so that the last flush cannot fail."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        # Stdout has no descriptor that could be redirected. It stays open until the process ends.
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115


def to_ascii(error: UnicodeError) -> tuple[str, int]:
    """Return ASCII for characters that a stream cannot encode, and the position behind them.

    >>> "✓ ├─ ⢄⣀ naïve 文".encode("ascii", ENCODING_ERRORS)
    b'+ +- ** na\\\\xefve \\\\u6587'
    """
    assert isinstance(error, UnicodeEncodeError)
    return "".join(map(_character, error.object[error.start : error.end])), error.end


codecs.register_error(ENCODING_ERRORS, to_ascii)


def escape_controls(text: str) -> str:
    r"""Return a text in which control characters, which could steer a terminal, are written as escapes.

    >>> print(escape_controls("a\x1b[2Jb\n"))
    a\x1b[2Jb\n
    """
    return _CONTROLS.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def _character(character: str) -> str:
    if character in _ASCII:
        return _ASCII[character]
    if "\u2500" <= character <= "\u257f":  # lines of boxes
        return "+"
    if "\u2800" <= character <= "\u28ff":  # dots of a plot
        return "*" if character > "\u2800" else " "
    return character.encode("ascii", "backslashreplace").decode()


class _Stdout(io.FileIO):
    """Descriptor of stdout, whose errors say that they are about stdout."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise ReaderGoneError("The reader of the output has left.") from None
        except OSError as error:
            raise OSError(error.errno, error.strerror, STDOUT) from None


class _Stderr(io.FileIO):
    """Descriptor of stderr, which drops what cannot be written."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


def _is_original(stream: object, original: object, descriptor: int) -> bool:
    if stream is not original or not isinstance(stream, io.TextIOWrapper):
        return False
    with contextlib.suppress(OSError, ValueError):
        stream.flush()
        return stream.fileno() == descriptor
    return False


def _text(raw: io.FileIO, before: TextIO | None, *, line_buffering: bool) -> io.TextIOWrapper:
    encoding = "utf-8" if before is None else before.encoding
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding, ENCODING_ERRORS, line_buffering=line_buffering or raw.isatty()
    )


def _occupy_descriptors() -> None:
    """Open the null device for descriptors 0, 1 and 2 that are closed: the next file would take their numbers."""
    while True:
        descriptor = os.open(os.devnull, os.O_RDWR)
        if descriptor > 2:
            os.close(descriptor)
            return
        _closed_at_start.add(descriptor)
        os.set_inheritable(descriptor, True)
