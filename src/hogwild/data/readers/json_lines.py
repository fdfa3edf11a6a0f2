"""Reader of JSON lines: one object per line, whose keys are columns. Objects within objects make columns ``a.b``.

Arrow parses each part of the text on all cores. A key that an object lacks is a missing cell.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.reader import Reader, ReadOptions
from hogwild.data.readers.line_segments import segments
from hogwild.data.readers.text_places import text_at_places
from hogwild.data.tables.arrow_memory import arrow_copy
from hogwild.data.tables.encode import one_batch
from hogwild.data.tables.sample import SAMPLE_ROWS, spread_rows
from hogwild.data.tables.table_reader import Batch, TableFormat, flat
from hogwild.errors import DataError, MissingExtraError
from hogwild.machine import usable_cores

if TYPE_CHECKING:
    import pyarrow

_BYTES_PER_TEXT = 8  # Bytes of memory per byte of text: the text, its columns and the entries of rows.
_LEAST, _MOST = 2**16, 2**24  # Bytes of text that are parsed together.
_MOST_NESTED = 1000  # Objects and lists within each other; Arrow's parser calls itself for each.
_NULL_LINE = re.compile(rb"\n(?:\xef\xbb\xbf)?[ \t\r]*null")  # After a line end, for which the search is fast.
_FORM = 'A line is an object such as {"label": 1, "city": "Ulm"}.'


def batches(path: Path, reading: ReadOptions, piece_bytes: int) -> Iterator[Batch]:
    """Yield the rows of a file as Arrow batches."""
    for segment in segments(path, min(_MOST, max(_LEAST, piece_bytes // _BYTES_PER_TEXT)), limits=reading.limits):
        rows = _parsed(path, segment.bytes, segment.first_line)
        if rows is not None and rows.num_rows:
            yield Batch(rows, segment.first_line)


def _spread(path: Path, reading: ReadOptions, places: int) -> Iterator[pyarrow.RecordBatch]:
    assert reading.encoding is not None
    for segment in text_at_places(path, reading.limits, places):
        with contextlib.suppress(DataError):  # A damaged place is told when the file is read.
            rows = _parsed(path, segment.bytes, 1)
            if rows is not None:
                yield spread_rows(rows, reading.encoding, SAMPLE_ROWS // places)


JSON_FORMAT = TableFormat(batches, sparse=True, spread=_spread)
JSON_LINES = Reader(
    "json", (".jsonl", ".ndjson", ".json"), JSON_FORMAT.read, compressible=True, tabular=True, fit=JSON_FORMAT.fitted
)


def _parsed(path: Path, text: Array, first_line: int) -> pyarrow.RecordBatch | None:
    try:
        import pyarrow as pa
        from pyarrow import json as arrow
    except ImportError:
        raise MissingExtraError("Reading JSON lines", "pyarrow", "parquet") from None
    if not text.tobytes().strip():
        return None
    if _NULL_LINE.search(b"\n" + text.tobytes()):  # Arrow's parser crashes if it comes first, and else makes a row.
        raise _failure(path, text, first_line, "a line is null")
    _check_nesting(path, text, first_line)
    for block in (2**20, len(text) + 1):  # A line may be longer than a block.
        try:
            found = arrow.read_json(
                pa.BufferReader(arrow_copy(text)),
                arrow.ReadOptions(use_threads=usable_cores() > 1, block_size=block),
                arrow.ParseOptions(newlines_in_values=False),
            )
            found.validate(full=True)
            return one_batch(flat(found))
        except (pa.ArrowException, ValueError, OverflowError) as error:
            reason = " ".join(str(error).split())[:200].rstrip(".")
    raise _failure(path, text, first_line, reason)


def _check_nesting(path: Path, text: Array, first_line: int) -> None:
    """Raise ``DataError`` for objects and lists so deep within others that Arrow's parser would leave its stack."""
    content = text.tobytes()
    if content.count(b"[") + content.count(b"{") <= _MOST_NESTED:
        return
    for number, line in enumerate(content.split(b"\n"), first_line):
        if line.count(b"[") + line.count(b"{") > _MOST_NESTED and _depth(line) > _MOST_NESTED:
            what = f"objects or lists within each other more than {_MOST_NESTED:,} deep"
            raise DataError(what, path=path, line=number, remedy=_FORM)


def _depth(line: bytes) -> int:
    """Return how deep objects and lists of a line are within each other, apart from brackets in texts.

    >>> _depth(b'{"a[[": [1, {"b": "}"}]}')
    3
    """
    kinds = np.zeros(256, np.int64)
    kinds[[*b"[{"]], kinds[[*b"]}"]] = 1, -1
    bare = re.sub(rb'"(?:[^"\\]|\\.)*"', b"", line)
    return int(np.cumsum(kinds[np.frombuffer(bare, np.uint8)]).max(initial=0))


def _failure(path: Path, text: Array, first_line: int, reason: str) -> DataError:
    """Return the error for text that Arrow refuses: of the first line that is no object, or of a column."""
    for number, line in enumerate(text.tobytes().split(b"\n"), first_line):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            return DataError(f"the line is not JSON ({_short(error)})", path=path, line=number, remedy=_FORM)
        if not isinstance(found, dict):
            return DataError("the line is not an object", path=path, line=number, remedy=_FORM)
        if len(json.loads(line, object_pairs_hook=list)) > len(found):
            return DataError("a key is twice in the object", path=path, line=number, remedy="Rename one of them.")
    changed = re.search(r"Column\(/?([^)]*)\) changed from (\w+) to (\w+) in row (\d+)", reason)
    if changed:
        what = f"a value of the type {changed[3]}, where those before are of the type {changed[2]}"
        return DataError(what, path=path, column=changed[1], remedy="Give all values of a key one type, or null.")
    return DataError(f"the lines cannot be read ({reason})", path=path, line=first_line, remedy=_FORM)


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:80].rstrip(".")
