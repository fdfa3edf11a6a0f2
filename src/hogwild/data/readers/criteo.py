"""Reader of Criteo's display-advertising format: a label, 13 numbers and 26 categories, with tabs and without header.

The rows are those that the encoding :func:`criteo_encoding` makes of the same table in any other format. A compiled
parser hashes the cells of each segment of the file on every core, without an Arrow table in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.data.csr import NO_VALUES, NO_WEIGHTS, Array, CSRRows
from hogwild.data.hashing import columns
from hogwild.data.reader import Divided, Reader, ReadOptions
from hogwild.data.readers import criteo_parser as parser
from hogwild.data.readers.line_segments import (
    Segment,
    divisible_bytes,
    excerpt,
    line_start,
    lines_of_whole_file,
    place,
    segments,
    split,
)
from hogwild.data.tables.log_bins import log_bins
from hogwild.data.tables.table_encoding import ColumnEncoding, TableEncoding
from hogwild.errors import DataError, ParameterError
from hogwild.machine import usable_cores

_STRETCH_BYTES = 1 << 20  # Bytes of text per stretch, which take a few milliseconds to parse.
_NUMBERS = [f"I{number}" for number in range(1, parser.NUMBERS + 1)]
_CATEGORIES = [f"C{number}" for number in range(1, parser.CATEGORIES + 1)]
_FORM = "A line is: label, 13 numbers and 26 categories, with tabs between them. Cells may be empty."


def criteo_encoding(bits: int) -> TableEncoding:
    """Return the encoding of the format: numbers in bins of logarithmic width, hashed categories, every value one.

    >>> len(criteo_encoding(18).columns), criteo_encoding(18).label
    (39, 'label')
    """
    numbers = [ColumnEncoding(name, "numeric", "log-bins") for name in _NUMBERS]
    categories = [ColumnEncoding(name, "categorical", "hash") for name in _CATEGORIES]
    names = ("label", *_NUMBERS, *_CATEGORIES)
    return TableEncoding((*numbers, *categories), "label", bits=bits, names=names, binary=True)


def fitted(paths: Sequence[Path], reading: ReadOptions) -> ReadOptions:
    """Return options with the encoding of the format, which needs no statistics of the files."""
    if reading.roles is not None or reading.label not in (None, "label") or reading.weight is not None:
        raise ParameterError("The columns of the format 'criteo' are known. For other roles of them use --format csv.")
    encoding = criteo_encoding(reading.bits if reading.encoding is None else reading.encoding.bits)
    if reading.encoding not in (None, encoding):
        raise ParameterError("The model was trained on another table than the format 'criteo'. Use --format csv.")
    return replace(reading, encoding=encoding)


def read(
    path: Path, reading: ReadOptions, piece_bytes: int, extent: tuple[int, int] | None = None
) -> Iterator[CSRRows]:
    r"""Yield the rows of a file in pieces, with ``2**reading.bits`` columns.

    With an extent, these are the rows whose lines start in these bytes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.tsv").write_text("1\t5" + 12 * "\t" + "\t68fd1e64" + 25 * "\t" + "\n")
    ...     (rows,) = read(Path(folder, "a.tsv"), ReadOptions(), 1 << 20)
    >>> rows.labels, len(rows.indices), rows.layout
    (array([1.]), 2, 'binary')
    """
    reading = fitted([path], reading)
    assert reading.encoding is not None
    tables = _tables(reading.encoding.bits)
    empty = True
    with ThreadPoolExecutor(usable_cores()) as pool, lines_of_whole_file(path, extent):
        labelled: bool | None = None
        for segment in segments(path, piece_bytes // 2, extent, reading.limits):
            if labelled is None:
                labelled = _has_label(segment, reading.unlabelled)
            rows = _rows(path, tables, segment, labelled, pool)
            if len(rows):
                yield rows
                empty = False
    if empty and extent is None:
        raise DataError("there is no row in the file", path=path, remedy="Check that it was written completely.")


CRITEO = Reader(
    "criteo", (), read, compressible=True, divided=Divided(divisible_bytes, read), streams=True, tabular=True,
    fit=fitted,
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class _Tables:
    """Constants of the parser for a number of bits."""

    features: int
    prefixes: Array
    sizes: Array
    binned: Array
    bins: Array

    @property
    def arguments(self) -> tuple[Any, ...]:
        return np.uint64(self.features - 1), self.prefixes, self.sizes, self.binned, self.bins


@lru_cache(maxsize=2)
def _tables(bits: int) -> _Tables:
    small = log_bins(np.arange(4096.0)).astype(np.uint16)
    return _Tables(columns(bits), *parser.prefixes(), parser.binned_columns(bits), small)


def _has_label(segment: Segment, unlabelled: bool) -> bool:
    """Return whether lines start with a label, by the number of tabs of the first one."""
    line = segment.bytes[: int(np.argmax(segment.bytes == 10))]
    return not (unlabelled and int(np.count_nonzero(line == 9)) == parser.COLUMNS - 1)


def _rows(path: Path, tables: _Tables, segment: Segment, labelled: bool, pool: ThreadPoolExecutor) -> CSRRows:
    stretches = split(segment, min(4 * usable_cores(), -(-len(segment.bytes) // _STRETCH_BYTES)))
    each = pool.map if len(stretches) > 1 else map
    lines = list(each(lambda stretch: int(parser.count_lines(segment.bytes, *stretch)), stretches))
    slots, total = list(accumulate(lines, initial=0)), sum(lines)
    ends, labels = np.zeros(total + 1, np.int64), np.empty(total)
    indices = np.empty(total * parser.COLUMNS, np.uint32)  # Pages that are not touched take no memory.
    base = segment.bytes.ctypes.data

    def parse(stretch: tuple[int, int], slot: int) -> tuple[int, int, int, int]:
        first, last = (np.uint64(base + at) for at in stretch)
        row, entry, problem, at = parser.parse(
            first, last, labelled, *tables.arguments, slot, slot * parser.COLUMNS, ends, labels, indices
        )
        return int(row) - slot, int(entry) - slot * parser.COLUMNS, int(problem), int(at) - base

    parsed = list(each(parse, stretches, slots[:-1]))
    failures = [(at, problem) for _, _, problem, at in parsed if problem != parser.NOTHING]
    if failures:
        raise _failure(path, segment, *min(failures))
    return _joined(parsed, slots, ends, labels, indices, tables.features)


def _joined(
    parsed: list[tuple[int, int, int, int]], slots: list[int], ends: Array, labels: Array, indices: Array, features: int
) -> CSRRows:
    """Return the filled slots as rows; close the gaps that empty cells and lines have left between stretches."""
    before = accumulate((entries for _, entries, _, _ in parsed), initial=0)
    parts = []
    for (rows, entries, _, _), slot, filled in zip(parsed, slots, before, strict=False):
        first = slot * parser.COLUMNS
        indices[filled : filled + entries] = indices[first : first + entries]
        parts.append((ends[slot + 1 : slot + 1 + rows] - (first - filled), labels[slot : slot + rows]))
    total = sum(entries for _, entries, _, _ in parsed)
    indptr = np.concatenate([np.zeros(1, np.int64), *(part for part, _ in parts)])
    joined = np.concatenate([part for _, part in parts])
    return CSRRows(indptr, indices[:total].copy(), NO_VALUES, joined, NO_WEIGHTS, features, "binary")


def _failure(path: Path, segment: Segment, offset: int, problem: int) -> DataError:
    """Return the error for the cell at ``offset``."""
    text = segment.bytes[offset : offset + 4096].tobytes()
    stop = offset + min(at for at in (text.find(b"\t"), text.find(b"\n"), len(text)) if at >= 0)
    start = line_start(segment, offset)
    cell = int(np.count_nonzero(segment.bytes[start:offset] == 9))
    what = {
        parser.LABEL: f"the label {excerpt(segment, offset, stop)} is not a number",
        parser.NUMBER: f"{excerpt(segment, offset, stop)} is not a number of at most 18 digits",
        parser.MISSING: f"the line ends after {cell + 1} of {parser.COLUMNS + 1} columns",
        parser.SURPLUS: f"the line has more than {parser.COLUMNS + 1} columns",
    }[problem]
    return DataError(what, path=path, line=place(segment, offset)[0], column=cell + 1, remedy=_FORM)
