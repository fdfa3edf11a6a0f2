"""Segments of text files: whole lines of plain or compressed files.

A plain file is read, and a compressed file is unpacked, segment by segment. In both cases only about one segment is
resident at a time. Every line of a segment ends with a newline, so that a parser can stop there
without counting bytes. A carriage return before the newline is left for the parser to skip.
"""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hogwild.data.compression import checked_compression, unpacked
from hogwild.data.text_limits import TextLimits
from hogwild.errors import DataError
from hogwild.guarded_map import map_file

NEWLINE = 10
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")  # Marks of UTF-16, and of UTF-32 in the order of this machine.
LONGEST_FIELD_BYTES = 4096  # Bytes of a field that a message looks at.
_BLOCK = 1 << 18  # Bytes that are processed at a time: few calls, and a block fits into the cache.


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Whole lines of a text file as bytes. Each line ends with a newline.

    The last line of the file gets a newline if it has none.
    """

    bytes: NDArray[np.uint8]  # Bytes of the lines, read-only.
    first_line: int  # Number of the first line in the file, counted from 1.


def segments(
    path: Path, segment_bytes: int, extent: tuple[int, int] | None = None, limits: TextLimits | None = None
) -> Iterator[Segment]:
    r"""Yield a file in order, in segments of whole lines of about ``segment_bytes`` bytes each.

    A line longer than that makes a longer segment, up to the limits. A byte-order mark at the start of the file is
    skipped. Compressed files are recognised by their first bytes and unpacked. With an extent, only the lines of a
    plain file that start in these bytes are read, and lines are counted from the first of them
    (:func:`lines_of_whole_file`).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.txt").write_bytes(b"1 2:3\n0 1:1\n1")
    ...     [(bytes(s.bytes), s.first_line) for s in segments(Path(folder, "a.txt"), 8)]
    [(b'1 2:3\n', 1), (b'0 1:1\n1\n', 2)]
    """
    line, empty, limits = 1, True, limits or TextLimits()
    try:
        with path.open("rb") as file:
            for text in _lines(path, file, max(1, min(segment_bytes, limits.longest_line)), extent, limits):
                # A segment that is longer than asked for is one line.
                if len(text) > limits.longest_line + 1:
                    limits.check_line(path, line, len(text) - 1)
                text.flags.writeable = False  # parsers are compiled for read-only bytes alone
                yield Segment(text, line)
                # Newlines are counted after the consumer has parsed the segment, so that its threads share the page
                # faults.
                line += newlines(text)
                empty = False
    except OSError as error:
        raise _unreadable(path, error) from None
    if empty and extent is None:
        raise DataError("the file is empty", path=path, remedy="Check that it was written or downloaded completely.")


def divisible_bytes(path: Path) -> int:
    """Return the number of bytes of a plain file; 1 for a compressed one, which cannot be read from its middle."""
    try:
        with path.open("rb") as file:
            plain = stat.S_ISREG(path.stat().st_mode) and checked_compression(path, file.peek(10)[:10]) is None
            return max(1, path.stat().st_size) if plain else 1
    except OSError as error:
        raise _unreadable(path, error) from None


@contextmanager
def lines_of_whole_file(path: Path, extent: tuple[int, int] | None) -> Iterator[None]:
    """Count the lines before an extent if an error names a line, so that it names the line of the file."""
    try:
        yield
    except DataError as error:
        if extent is None or error.line is None:
            raise
        with path.open("rb") as file:
            start = _line_start(np.memmap(file, np.uint8, "r"), extent[0])
            file.seek(0)
            blocks = (file.read(min(_BLOCK, start - at)) for at in range(0, start, _BLOCK))
            line = error.line + sum(block.count(b"\n") for block in blocks)
        raise DataError(
            error.what, path=path, line=line, row=error.row, column=error.column, remedy=error.remedy
        ) from None


def newlines(text: NDArray[np.uint8]) -> int:
    r"""Count the newlines in a text.

    >>> newlines(np.frombuffer(b"a\nb\nc", np.uint8))
    2
    """
    blocks = (text[at : at + _BLOCK] for at in range(0, len(text), _BLOCK))
    return sum(int(np.count_nonzero(block == NEWLINE)) for block in blocks)


def split(segment: Segment, parts: int) -> list[tuple[int, int]]:
    r"""Divide a segment into at most ``parts`` stretches ``(start, stop)`` of whole lines, of about equal size.

    >>> split(Segment(np.frombuffer(b"1 2:3\n0 1:1\n1 1:1\n", np.uint8), 1), 2)
    [(0, 12), (12, 18)]
    """
    text, cuts = segment.bytes, [0]
    for part in range(1, parts):
        cuts.append(_line_start(text, max(cuts[-1], len(text) * part // parts)))
    cuts.append(len(text))
    return [(start, stop) for start, stop in pairwise(cuts) if start < stop]


def place(segment: Segment, offset: int) -> tuple[int, int]:
    r"""Return the line in the file and the column in that line, both counted from 1, of a byte of the segment.

    >>> place(Segment(np.frombuffer(b"1 2:3\n0 x:1\n", np.uint8), first_line=7), 8)
    (8, 3)
    """
    before = segment.bytes[:offset]
    start = line_start(segment, offset)
    if offset - start < _BLOCK:
        column = len(before[start:].tobytes().decode("utf-8", "replace")) + 1
    else:  # Every character has one byte that does not continue another.
        blocks = (before[at : at + _BLOCK] for at in range(start, offset, _BLOCK))
        column = sum(int(np.count_nonzero(block & 0xC0 != 0x80)) for block in blocks) + 1
    return segment.first_line + newlines(before[:start]), column


def line_start(segment: Segment, offset: int) -> int:
    """Return the start of the line that has the byte at an offset."""
    while offset > 0:
        block = max(0, offset - _BLOCK)
        found = np.flatnonzero(segment.bytes[block:offset] == NEWLINE)
        if found.size:
            return block + int(found[-1]) + 1
        offset = block
    return 0


def field_end(segment: Segment, offset: int) -> int:
    """Return the end of the field at an offset, for a message, which looks at no more than its first bytes."""
    text = segment.bytes[offset : offset + LONGEST_FIELD_BYTES + 1].tobytes()
    ends = [at for at in map(text.find, (b" ", b"\t", b"\r", b"\n", b"#")) if at >= 0]
    return offset + min(ends, default=len(text))


def excerpt(segment: Segment, start: int, stop: int, longest: int = 40) -> str:
    r"""Return a stretch of the segment as text for a message, shortened and with invalid bytes escaped.

    >>> excerpt(Segment(np.frombuffer(b"1 2:\x00abc\n", np.uint8), 1), 2, 8)
    "'2:\\x00abc'"
    """
    text = segment.bytes[start : min(stop, start + longest)].tobytes().decode("utf-8", "backslashreplace")
    return repr(text + ("..." if stop - start > longest else ""))


def _line_start(text: NDArray[np.uint8], at: int, longest_line: int | None = None) -> int:
    """Return the first start of a line at or after ``at``; the end of the search if lines here are too long."""
    if at == 0 or at >= len(text) or text[at - 1] == NEWLINE:
        return min(at, len(text))
    end = len(text) if longest_line is None else min(len(text), at + longest_line + 2)
    for block in range(at, end, _BLOCK):
        found = text[block : min(end, block + _BLOCK)] == NEWLINE
        if found.any():
            return block + int(found.argmax()) + 1
    return end


def _lines(
    path: Path, file: BufferedReader, size: int, extent: tuple[int, int] | None, limits: TextLimits
) -> Iterator[NDArray[np.uint8]]:
    if extent is not None:
        return _plain(path, file, size, limits, extent)
    compression = checked_compression(path, file.peek(10)[:10])
    if compression is not None:
        return _joined(path, unpacked(path, file, compression, limits), size, limits)
    if stat.S_ISREG(path.stat().st_mode):
        return _plain(path, file, size, limits)
    # The file is a pipe, which cannot be memory-mapped.
    return _joined(path, iter(lambda: file.read(_BLOCK), b""), size, limits)


def _mark_bytes(path: Path, first: bytes) -> int:
    """Return the length of the byte-order mark in the first bytes of a text, which is 0 without one."""
    if first.startswith(_WIDE_MARKS):
        raise DataError("the text is in UTF-16 or UTF-32", path=path, line=1, remedy="Save it as UTF-8.")
    return len(_BYTE_ORDER_MARK) if first.startswith(_BYTE_ORDER_MARK) else 0


def _plain(
    path: Path, file: BufferedReader, size: int, limits: TextLimits, extent: tuple[int, int] | None = None
) -> Iterator[NDArray[np.uint8]]:
    length = file.seek(0, 2)
    if length == 0:
        return
    pages = map_file(file.fileno(), length)
    text, start, end = np.frombuffer(pages, np.uint8), 0, length
    if extent is not None:
        start, end = (_line_start(text, at, limits.longest_line) for at in extent)
    start = max(start, _mark_bytes(path, pages[: len(_BYTE_ORDER_MARK)]))
    while start < end:
        stop = min(end, start + size)
        if stop < end:
            # No newline is looked for beyond the longest line: a file with holes may have a terabyte of zeros.
            most = min(length, start + limits.longest_line + 2)
            stop = pages.rfind(b"\n", start, stop) + 1 or pages.find(b"\n", stop, most) + 1 or most
        # A line that is too long is not copied, because the caller refuses it.
        too_long = stop - start > limits.longest_line + 1
        yield text[start:stop] if too_long else _copied(path, file, start, stop, is_end=stop == length)
        _release(pages, start, stop)
        start = stop


def _release(pages: mmap.mmap, start: int, stop: int) -> None:
    """Remove pages that the reader has passed from the resident set."""
    if hasattr(mmap, "MADV_DONTNEED"):
        first = start - start % mmap.PAGESIZE
        if stop - stop % mmap.PAGESIZE > first:
            pages.madvise(mmap.MADV_DONTNEED, first, stop - stop % mmap.PAGESIZE - first)


def _copied(path: Path, file: BufferedReader, start: int, stop: int, is_end: bool) -> NDArray[np.uint8]:
    """Return whole lines of a plain file.

    A parser goes over the text several times and stops at its last newline. Another program must not be able to change
    the text meanwhile, so the text is a copy.
    """
    text = np.empty(stop - start + 1, np.uint8)
    text[-1] = NEWLINE
    done = 0
    while done < stop - start:
        read = os.preadv(file.fileno(), [text[done:-1].data], start + done)
        if read == 0:
            what = f"another program has cut the file to {start + done:,} bytes while it was read"
            raise DataError(what, path=path, remedy=_AGAIN)
        done += read
    if text[-2] == NEWLINE:
        return text[:-1]
    if not is_end:
        raise DataError("another program has changed the file while it was read", path=path, remedy=_AGAIN)
    return text


def _joined(path: Path, blocks: Iterator[bytes], size: int, limits: TextLimits) -> Iterator[NDArray[np.uint8]]:
    waiting: list[bytes] = []
    waiting_bytes, open_bytes, lines, first = 0, 0, 1, True
    for block in blocks:
        if first and block:
            block = block[_mark_bytes(path, block) :]
            first = False
        waiting.append(block)
        waiting_bytes += len(block)
        open_bytes += len(block)
        if b"\n" in block:
            lines, open_bytes = lines + block.count(b"\n"), len(block) - block.rfind(b"\n") - 1
        limits.check_line(path, lines, open_bytes)
        if waiting_bytes < size or waiting_bytes == open_bytes:
            continue
        text = b"".join(waiting)
        stop = text.rfind(b"\n") + 1
        yield np.frombuffer(text, np.uint8, stop)
        waiting, waiting_bytes = [text[stop:]], len(text) - stop
    if waiting_bytes:
        text = b"".join(waiting)
        yield np.frombuffer(text if text.endswith(b"\n") else text + b"\n", np.uint8)


_AGAIN = "Make or fetch the file again."


def _unreadable(path: Path, error: OSError) -> DataError:
    if isinstance(error, FileNotFoundError):
        return DataError("there is no such file", path=path, remedy="Check the path.")
    if isinstance(error, IsADirectoryError):
        return DataError("this is a folder, not a text file", path=path, remedy="Name the file in it.")
    if isinstance(error, PermissionError):
        return DataError("the file may not be read", path=path, remedy="Check its permissions.")
    return DataError(f"the file cannot be read ({error.strerror or error})", path=path, remedy="Check the disk.")
