"""Reader of Criteo's display-advertising format: a label, 13 numbers and 26 categories, with tabs and without header.

The rows are those that the encoding :func:`criteo_encoding` makes of the same table in any other format. A compiled
parser hashes the cells of segments of the file, one on each core, without an Arrow table in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.data.csr import NO_VALUES, NO_WEIGHTS, Array, CSRRows
from hogwild.data.hashing import columns
from hogwild.data.loader import map_in_order, reader_threads
from hogwild.data.reader import Divided, Reader, ReadOptions
from hogwild.data.readers import criteo_parser as parser
from hogwild.data.readers.csv_table import CSV_FORMAT
from hogwild.data.readers.line_segments import (
    Segment,
    divisible_bytes,
    excerpt,
    line_start,
    lines_of_whole_file,
    place,
    segments,
)
from hogwild.data.tables.column_roles import fields_of
from hogwild.data.tables.log_bins import log_bins
from hogwild.data.tables.table_encoding import ColumnEncoding, TableEncoding
from hogwild.errors import DataError, ParameterError

# Bytes of text that are parsed at a time: few enough that all arrays stay in memory that was used before, which takes a
# third of the time of new pages, and enough that a thread is rarely woken.
_LEAST, _MOST = 2**16, 2**22
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
    if reading.fields is not None:
        fields = fields_of(reading.fields, [*_NUMBERS, *_CATEGORIES], ["label", *_NUMBERS, *_CATEGORIES], paths[0])
        encoding = replace(encoding, fields=fields)
    elif reading.encoding is not None:
        encoding = replace(encoding, fields=reading.encoding.fields)
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
    if reading.encoding.fields is not None:  # A vocabulary numbers the features, which the parser does not know.
        yield from CSV_FORMAT.read(path, reading, piece_bytes)
        return
    tables = _tables(reading.encoding.bits)
    size = max(_LEAST, min(_MOST, piece_bytes // (2 * (reader_threads() + 2))))
    empty = True
    with lines_of_whole_file(path, extent):
        parts = segments(path, size, extent, reading.limits)
        first = next(parts, None)
        if first is None:
            return
        labelled = _has_label(first, reading.unlabelled)
        for _, rows in map_in_order(lambda segment: _rows(path, tables, segment, labelled), chain([first], parts)):
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


def _rows(path: Path, tables: _Tables, segment: Segment, labelled: bool) -> CSRRows:
    text = segment.bytes
    most = len(text) // parser.COLUMNS + 1  # A row has a tab or the end of its line behind each column.
    ends, labels = np.zeros(most + 1, np.int64), np.empty(most)
    indices = np.empty(most * parser.COLUMNS, np.uint32)  # Pages that are not touched take no memory.
    first = text.ctypes.data
    rows, entries, problem, at = parser.parse(
        np.uint64(first), np.uint64(first + len(text)), labelled, *tables.arguments, 0, 0, ends, labels, indices
    )
    if problem != parser.NOTHING:
        raise _failure(path, segment, int(at) - first, int(problem))
    return CSRRows(
        ends[: rows + 1].copy(), indices[:entries].copy(), NO_VALUES, labels[:rows].copy(), NO_WEIGHTS,
        tables.features, "binary",
    )  # fmt: skip


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
