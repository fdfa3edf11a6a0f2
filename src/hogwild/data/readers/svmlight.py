"""Reader of the svmlight (libsvm, libFM) text format: ``label [qid:n] index:value index:value ... [# comment]``.

Each segment of the file is divided into stretches of lines. The reader counts all stretches, allocates the arrays of
the segment, and parses all stretches directly into these arrays. Both passes run on every core, in compiled code that
does not hold the GIL.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from math import isinf
from pathlib import Path

import numpy as np

from hogwild.data.csr import NO_WEIGHTS, Array, CSRRows
from hogwild.data.reader import LARGEST_INDEX, Divided, Reader, ReadOptions
from hogwild.data.readers import svmlight_parser as parser
from hogwild.data.readers.line_segments import Segment, divisible_bytes, lines_of_whole_file, segments, split
from hogwild.data.readers.long_number import to_float
from hogwild.data.readers.svmlight_parser import failure
from hogwild.errors import DataError
from hogwild.machine import usable_cores

# Bytes of memory per byte of text. The densest realistic text is "1:1 ", with 4 bytes of text and 8 of memory.
_BYTES_PER_TEXT = 2
_STRETCH_BYTES = 1 << 20  # Bytes of text per stretch, which take a few milliseconds to parse.
_TO_INFINITY = 3.4028235677973366e38  # Smallest number that is infinite in float32.


def read(
    path: Path, reading: ReadOptions, piece_bytes: int, extent: tuple[int, int] | None = None
) -> Iterator[CSRRows]:
    r"""Yield the rows of a file in pieces, with the raw indices of the file.

    With an extent, these are the rows whose lines start in these bytes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.svm").write_text("+1 3:0.5 7:2 # first\n-1 1:1e-3\n")
    ...     (rows,) = read(Path(folder, "a.svm"), ReadOptions(), 1 << 20)
    >>> rows.labels.tolist(), rows.indices.tolist(), rows.values
    ([1.0, -1.0], [3, 7, 1], array([5.e-01, 2.e+00, 1.e-03], dtype=float32))
    """
    empty = True
    with ThreadPoolExecutor(usable_cores()) as pool, lines_of_whole_file(path, extent):
        for segment in segments(path, piece_bytes // _BYTES_PER_TEXT, extent, reading.limits):
            rows = _rows(path, reading, segment, pool)
            if len(rows):
                yield rows
                empty = False
    if empty and extent is None:
        raise DataError(
            "there is no row in the file, only blank lines and comments",
            path=path,
            remedy="Check that it was written or downloaded completely.",
        )


def parse_lines(path: Path, reading: ReadOptions, segment: Segment) -> CSRRows:
    """Return the rows of whole lines; errors name ``path``."""
    with ThreadPoolExecutor(usable_cores()) as pool:
        return _rows(path, reading, segment, pool)


SVMLIGHT = Reader(
    "svmlight",
    (".svm", ".svmlight", ".libsvm", ".libfm", ".txt", ".dat"),
    read,
    counts_from_one=True,
    compressible=True,
    streams=True,
    lines=parse_lines,
    divided=Divided(divisible_bytes, read),
)


@dataclass(frozen=True, slots=True, eq=False)
class _Arrays:
    """Arrays of a segment, with room for the entries of all its stretches."""

    indptr: Array
    labels: Array
    indices: Array
    values: Array


@dataclass(frozen=True, slots=True)
class _Parsed:
    """Result of one stretch: its first slots, its numbers of rows and entries, and failures as (offset, problem)."""

    row: int
    entry: int
    rows: int
    entries: int
    features: int
    failures: tuple[tuple[int, int], ...]


def _rows(path: Path, reading: ReadOptions, segment: Segment, pool: ThreadPoolExecutor) -> CSRRows:
    stretches = split(segment, min(4 * usable_cores(), -(-len(segment.bytes) // _STRETCH_BYTES)))
    each = pool.map if len(stretches) > 1 else map
    lines, colons = zip(*each(lambda stretch: parser.count(segment.bytes, *stretch), stretches), strict=True)
    arrays = _Arrays(
        np.zeros(sum(lines) + 1, np.int64),
        np.empty(sum(lines), np.float64),
        np.empty(sum(colons), np.uint32),
        np.empty(sum(colons), np.float32),
    )
    slots = zip(accumulate(lines, initial=0), accumulate(colons, initial=0), strict=True)
    room = map(sum, zip(lines, colons, strict=True))
    parsed = list(each(partial(_parse, segment, reading, arrays), stretches, slots, room))
    if failures := [found for stretch in parsed for found in stretch.failures]:
        raise failure(path, segment, reading, *min(failures))
    return _joined(arrays, parsed)


def _parse(
    segment: Segment, reading: ReadOptions, arrays: _Arrays, stretch: tuple[int, int], slots: tuple[int, int], room: int
) -> _Parsed:
    base = segment.bytes.ctypes.data
    # The array has its largest possible size. Pages that are not touched take no memory.
    inexact = np.empty((room, 3), np.int64)
    row, entry, n_inexact, features, problem, at = parser.parse(
        *map(np.uint64, (base + stretch[0], base + stretch[1])), reading.unlabelled, *_limits(reading),
        *map(np.uint64, slots),
        arrays.indptr, arrays.labels, arrays.indices, arrays.values, inexact,
    )  # fmt: skip
    failures = [(at - base, problem)] if problem != parser.NOTHING else []
    failures += _convert_inexact(segment, arrays, inexact[:n_inexact] - [base, base, 0])
    return _Parsed(*slots, row - slots[0], entry - slots[1], features, tuple(failures))


def _limits(reading: ReadOptions) -> tuple[int, int, bool]:
    """Return the smallest allowed index, the first index that is too large, and whether such indices are dropped.

    While it is unknown whether indices count from 0 or from 1, only an index that is wrong in both cases is an error.
    """
    base = 1 if reading.base == "auto" else reading.base
    limit = LARGEST_INDEX + 1 if reading.features is None else reading.features + base
    return int(reading.base == 1), limit, reading.extra == "ignore"


def _convert_inexact(segment: Segment, arrays: _Arrays, inexact: Array) -> Iterator[tuple[int, int]]:
    """Convert the numbers that the compiled parser cannot convert, and yield those that are too large."""
    for start, stop, slot in inexact.tolist():
        number = to_float(segment.bytes[start:stop].tobytes())
        if slot < 0:
            arrays.labels[-1 - slot] = number
            if isinf(number):
                yield start, parser.LABEL
        elif abs(number) < _TO_INFINITY:
            arrays.values[slot] = number
        else:
            yield start, parser.VALUE


def _joined(arrays: _Arrays, parsed: list[_Parsed]) -> CSRRows:
    """Return the filled slots as rows; close the gaps that comments and blank lines have left between stretches."""
    rows, entries = sum(stretch.rows for stretch in parsed), sum(stretch.entries for stretch in parsed)
    last = parsed[-1]
    if rows == last.row + last.rows and entries == last.entry + last.entries:
        indptr, labels = arrays.indptr[: rows + 1], arrays.labels[:rows]
        indices, values = arrays.indices[:entries], arrays.values[:entries]
    else:
        by_row = [slice(stretch.row, stretch.row + stretch.rows) for stretch in parsed]
        by_entry = [slice(stretch.entry, stretch.entry + stretch.entries) for stretch in parsed]
        filled = accumulate((stretch.entries for stretch in parsed), initial=0)
        shifts = [before - stretch.entry for stretch, before in zip(parsed, filled, strict=False)]
        ends = arrays.indptr[1:]
        indptr = np.concatenate([[0], *(ends[part] + shift for part, shift in zip(by_row, shifts, strict=True))])
        labels = np.concatenate([arrays.labels[part] for part in by_row])
        indices = np.concatenate([arrays.indices[part] for part in by_entry])
        values = np.concatenate([arrays.values[part] for part in by_entry])
    features = max(stretch.features for stretch in parsed)
    return CSRRows(indptr, indices, values, labels, NO_WEIGHTS, features, "sparse")
