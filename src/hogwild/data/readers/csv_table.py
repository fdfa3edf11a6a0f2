"""Reader of CSV and TSV tables: text with one row per line, with or without a header and quotes, also compressed.

The text is divided where a line ends outside of quotes. Arrow parses each part on all cores.
"""

from __future__ import annotations

import contextlib
import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.reader import Reader, ReadOptions
from hogwild.data.readers.line_segments import NEWLINE, Segment, newlines, segments
from hogwild.data.readers.text_places import text_at_places
from hogwild.data.tables.arrow_memory import arrow_copy
from hogwild.data.tables.column_roles import no_column
from hogwild.data.tables.encode import TableEncoder, one_batch
from hogwild.data.tables.sample import SAMPLE_ROWS, spread_rows
from hogwild.data.tables.table_encoding import TableEncoding
from hogwild.data.tables.table_reader import Batch, TableFormat
from hogwild.errors import DataError, MissingExtraError
from hogwild.jit import compiled
from hogwild.machine import usable_cores

if TYPE_CHECKING:
    import pyarrow

_SEPARATORS = ",\t;|"
_TABS = (".tsv", ".tab")
_BYTES_PER_TEXT = 8  # Bytes of memory per byte of text: the text, its columns and the entries of rows.
_LEAST, _MOST = 2**16, 2**24  # Bytes of text that are parsed together.
_BLOCK = 2**18  # Bytes that are looked through at a time.
_LONGEST_QUOTE = 2**26  # Bytes in which a quote has to be closed.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|nan|inf|na|n/a|null|none|", re.IGNORECASE)


def batches(path: Path, reading: ReadOptions, piece_bytes: int) -> Iterator[Batch]:
    """Yield the rows of a file as Arrow batches."""
    parts = segments(path, min(_MOST, max(_LEAST, piece_bytes // _BYTES_PER_TEXT)), limits=reading.limits)
    first = next(parts)
    dialect = _dialect(path, first.bytes, reading)
    for segment in _closed(
        path, chain([_without_header(first) if dialect.header else first], parts), dialect.separator
    ):
        if len(segment.bytes):
            rows = _parsed(path, segment.bytes, segment.first_line, dialect)
            if rows.num_rows:
                yield Batch(rows, segment.first_line)


def _spread(path: Path, reading: ReadOptions, places: int) -> Iterator[pyarrow.RecordBatch]:
    """Yield rows from some places of a file. A place within quotes makes lines that no table has, and is left out."""
    assert reading.encoding is not None
    first = next(segments(path, _LEAST, limits=reading.limits))
    dialect = _dialect(path, first.bytes, reading)
    start = len(first.bytes) - len(_without_header(first).bytes) if dialect.header else 0
    for segment in text_at_places(path, reading.limits, places, start):
        with contextlib.suppress(DataError):
            yield spread_rows(_parsed(path, segment.bytes, 1, dialect), reading.encoding, SAMPLE_ROWS // places)


CSV_FORMAT = TableFormat(batches, spread=_spread)
CSV = Reader("csv", (".csv", ".tsv", ".tab"), CSV_FORMAT.read, compressible=True, tabular=True, fit=CSV_FORMAT.fitted)


@dataclass(frozen=True, slots=True)
class _Dialect:
    """Separator and names of the columns, whether a header names them, and the types to convert them to."""

    separator: str
    names: tuple[str, ...]
    header: bool
    types: dict[str, Any] | None  # Type of each column to read. None: all columns, with the types of the text.


def _dialect(path: Path, text: Array, reading: ReadOptions) -> _Dialect:
    try:
        line = text[: int(np.argmax(text == NEWLINE))].tobytes().decode().rstrip("\r")
    except UnicodeDecodeError:
        raise DataError("the text is not UTF-8", path=path, line=1, remedy="Save it as UTF-8.") from None
    if "\0" in line:
        raise DataError("a NUL byte: this is not plain text", path=path, line=1, remedy="Save it as UTF-8.")
    separator = "\t" if _is_tabbed(path) else _separator(line)
    first = _fields(line, separator)
    encoding = reading.encoding
    if encoding is None:
        header = reading.header if reading.header is not None else _is_header(first)
        names = _names(path, first) if header else tuple(str(number) for number in range(1, len(first) + 1))
        return _Dialect(separator, names, header, None)
    if encoding.names is None:
        names = _names(path, first)
        return _Dialect(separator, names, True, _types(path, names, encoding, reading))
    names = encoding.names
    if len(first) == len(names) - 1 and reading.unlabelled and encoding.label in names:
        names = tuple(name for name in names if name != encoding.label)
    if len(first) != len(names):
        what = f"the first line has {len(first):,} columns, and {len(names):,} are expected"
        raise DataError(what, path=path, line=1, remedy="Give the same columns in the same order.")
    return _Dialect(separator, names, False, _types(path, names, encoding, reading))


def _types(path: Path, names: tuple[str, ...], encoding: TableEncoding, reading: ReadOptions) -> dict[str, Any]:
    import pyarrow as pa

    there = set(names)
    for name in TableEncoder(encoding, path, reading.unlabelled).needed():
        if name not in there:
            raise no_column(name, names, path, "label" if name == encoding.label else "")
    types = {}
    for column in encoding.columns:
        types[column.name] = pa.float64() if column.role == "numeric" else pa.string()
    if encoding.label is not None and encoding.label in names:
        types[encoding.label] = None if encoding.classes is None else pa.string()
    if encoding.weight is not None and encoding.weight in names:
        types[encoding.weight] = pa.float64()
    return types


def _is_tabbed(path: Path) -> bool:
    return any(ending.lower() in _TABS for ending in path.suffixes[-2:])


def _separator(line: str) -> str:
    """Return the separator that is most frequent outside of quotes.

    >>> _separator('id;"a, b, c";x')
    ';'
    """
    bare = re.sub(r'"[^"]*"', "", line)
    return max(_SEPARATORS, key=bare.count)


def _fields(line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        return line.split(separator)


def _is_header(fields: list[str]) -> bool:
    """Return whether the first line has names: no numbers, and empty cells in less than half of the columns.

    The first column of a table that pandas writes with its index has no name.

    >>> _is_header(["age", "city"]), _is_header(["", "age", "city"]), _is_header(["30", "Ulm"])
    (True, True, False)
    """
    cells = [field.strip() for field in fields]
    named = [cell for cell in cells if cell]
    return 2 * len(named) > len(cells) and not any(_NUMBER.fullmatch(cell) for cell in named)


def _names(path: Path, fields: list[str]) -> tuple[str, ...]:
    names = tuple(field.strip() or str(number) for number, field in enumerate(fields, 1))
    for name, count in Counter(names).items():
        if count > 1:
            raise DataError("several columns have this name", path=path, line=1, column=name, remedy="Rename them.")
    return names


def _without_header(segment: Segment) -> Segment:
    return Segment(segment.bytes[int(np.argmax(segment.bytes == NEWLINE)) + 1 :], segment.first_line + 1)


def _closed(path: Path, parts: Iterable[Segment], separator: str) -> Iterator[Segment]:
    """Yield segments in which every quote is closed; a segment whose end is in quotes is joined with the next one."""
    waiting: list[Segment] = []
    inside = False
    for segment in parts:
        if inside or has_quote(segment.bytes):
            inside = bool(ends_in_quotes(segment.bytes, ord(separator), inside))
        waiting.append(segment)
        if not inside:
            yield waiting[0] if len(waiting) == 1 else _joined(waiting)
            waiting = []
        elif sum(len(part.bytes) for part in waiting) > _LONGEST_QUOTE:
            break
    if waiting:
        line = waiting[0].first_line + newlines(waiting[0].bytes[: _last_quote(waiting[0].bytes)])
        remedy = 'Close it with ", or double each quote within quotes.'
        raise DataError("a quote is not closed", path=path, line=line, remedy=remedy)


def has_quote(text: Array) -> bool:
    """Return whether there is a quote in the text."""
    return any(bool((text[at : at + _BLOCK] == 34).any()) for at in range(0, len(text), _BLOCK))


def _last_quote(text: Array) -> int:
    found = np.flatnonzero(text == 34)
    return int(found[-1]) if found.size else 0


def _joined(parts: list[Segment]) -> Segment:
    return Segment(np.concatenate([part.bytes for part in parts]), parts[0].first_line)


@compiled
def ends_in_quotes(text: Array, separator: int, inside: bool) -> bool:
    """Return whether a quote is open after the text. A quote opens only at the start of a field.

    >>> import numpy as np
    >>> bool(ends_in_quotes(np.frombuffer(b'a,"b', np.uint8), 44, False))
    True
    >>> bool(ends_in_quotes(np.frombuffer(b'a,5" b', np.uint8), 44, False))
    False
    """
    starts = True
    for character in text:
        if inside:
            inside = character != 34
            starts = not inside  # A second quote directly behind opens again: it stands for a quote.
        elif character == 34:
            inside = starts
            starts = False
        else:
            starts = character == 10 or character == separator
    return inside


def _parsed(path: Path, text: Array, line: int, dialect: _Dialect) -> pyarrow.RecordBatch:
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtraError("Reading CSV", "pyarrow", "parquet") from None
    quoted = has_quote(text)
    try:
        return one_batch(_read(text, dialect, quoted, dialect.types, whole=False))
    except (pa.ArrowException, ValueError, OverflowError):
        pass  # A line may be longer than a block. Without threads, the message has the number of the row.
    try:
        return one_batch(_read(text, dialect, quoted, dialect.types, whole=True))
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise _failure(path, str(error), line, dialect) from None


def _read(text: Array, dialect: _Dialect, quoted: bool, types: dict[str, Any] | None, *, whole: bool) -> pyarrow.Table:
    import pyarrow as pa
    from pyarrow import csv as arrow

    def read(types: dict[str, Any]) -> pyarrow.Table:
        return arrow.read_csv(
            pa.BufferReader(arrow_copy(text)),
            arrow.ReadOptions(
                column_names=dialect.names, use_threads=not whole and usable_cores() > 1,
                block_size=len(text) + 1 if whole else 2**20,
            ),
            arrow.ParseOptions(delimiter=dialect.separator, newlines_in_values=quoted),
            arrow.ConvertOptions(
                column_types={name: kind for name, kind in types.items() if kind is not None},
                include_columns=list(types), strings_can_be_null=True, true_values=[], false_values=[],
            ),
        )  # fmt: skip

    if types is not None:
        return read(types)
    found = read(dict.fromkeys(dialect.names))
    odd = {field.name: pa.string() for field in found.schema if _is_odd(field.type)}
    return read({**dict.fromkeys(dialect.names), **odd}) if odd else found


def _is_odd(kind: pyarrow.DataType) -> bool:
    from pyarrow import types

    return bool(types.is_temporal(kind) or types.is_binary(kind))


_ROW = re.compile(r"Row #(\d+): ")
_COLUMN = re.compile(r"In CSV column #(\d+): ")


def _failure(path: Path, message: str, first_line: int, dialect: _Dialect) -> DataError:
    """Return the error for a message of Arrow, with the line and the column that it names."""
    row, number = _ROW.search(message), _COLUMN.search(message)
    line = None if row is None else first_line + int(row[1]) - 1
    at = len(dialect.names) if number is None else int(number[1])
    column = dialect.names[at] if at < len(dialect.names) else None
    what, remedy = _words(_COLUMN.sub("", _ROW.sub("", message)))
    return DataError(what, path=path, line=line, column=column, remedy=remedy)


def _words(message: str) -> tuple[str, str]:
    counted = re.search(r"Expected (\d+) columns, got (\d+)", message)
    if counted:
        return f"the row has {int(counted[2]):,} columns, and {int(counted[1]):,} are expected", (
            "Check its separators and quotes."
        )
    wrong = re.search(r"CSV conversion error to double: invalid value '(.*)'", message, re.DOTALL)
    if wrong:
        return f"{wrong[1]!r:.80} is not a number", "Correct it, or make the column categorical (--categorical)."
    if "UTF8" in message:
        return "the text is not UTF-8", "Save it as UTF-8."
    reason = " ".join(message.split())[:200].rstrip(".")
    return f"the table is damaged ({reason})", "Make or fetch the file again."
