"""Limits of text files, so that a file cannot take unbounded memory or time before it is known to be bad.

A megabyte of gzip can hold a gigabyte, and a file without line ends is one line. The limits are far beyond files of
data. ``--longest-line`` and ``--most-unpacked`` raise them for a command, the environment variables
``HOGWILD_LONGEST_LINE`` and ``HOGWILD_MOST_UNPACKED`` for every command and program, and
``ReadOptions(limits=TextLimits(...))`` for one call.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from hogwild.errors import DataError, ParameterError
from hogwild.files import format_size, parse_size

_LONGEST_LINE_BYTES = 2**26
_ALWAYS_UNPACKED_BYTES = 2**30
_UNPACKED_PER_BYTE = 200  # Text of data is compressed to a third or a tenth.


def _from_environment(name: str, default: int | None) -> int | None:
    text = os.environ.get(name, "")
    if not text:
        return default
    try:
        return max(1, parse_size(text))
    except ParameterError as error:
        raise ParameterError(f"The environment variable {name}: {error}") from None


@dataclass(frozen=True, slots=True)
class TextLimits:
    """Limits of one file."""

    longest_line: int = field(
        default_factory=lambda: _from_environment("HOGWILD_LONGEST_LINE", None) or _LONGEST_LINE_BYTES
    )
    # Most bytes that a compressed file may hold. None means 1 GiB, or 200 times the size of the file.
    most_unpacked: int | None = field(default_factory=lambda: _from_environment("HOGWILD_MOST_UNPACKED", None))

    def check_line(self, path: Path, line: int, line_bytes: int) -> None:
        """Raise ``DataError`` if a line is longer than allowed.

        >>> TextLimits(longest_line=8).check_line(Path("a.svm"), 3, 9)
        Traceback (most recent call last):
            ...
        hogwild.errors.DataError: a.svm, line 3: the line is longer than 8 B. Is it text ...
        """
        if line_bytes > self.longest_line:
            raise DataError(
                f"the line is longer than {format_size(self.longest_line)}", path=path, line=line,
                remedy="Is it text with line ends? Then allow longer ones (--longest-line 1GiB, HOGWILD_LONGEST_LINE).",
            )  # fmt: skip

    def check_unpacked(self, path: Path, file_bytes: int, unpacked_bytes: int) -> None:
        """Raise ``DataError`` if a compressed file holds more bytes than allowed."""
        most = self.most_unpacked or max(_ALWAYS_UNPACKED_BYTES, _UNPACKED_PER_BYTE * file_bytes)
        if unpacked_bytes > most:
            raise DataError(
                f"the file of {format_size(file_bytes)} holds more than {format_size(most)}", path=path,
                remedy="If it is what it should be, allow more (--most-unpacked 100GiB, HOGWILD_MOST_UNPACKED).",
            )  # fmt: skip
