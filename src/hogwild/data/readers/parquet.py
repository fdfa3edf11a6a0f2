"""Reader of Parquet tables: one column is the label, optionally one is the weight, and all others make features.

| column                              | features                                                                  |
|-------------------------------------|---------------------------------------------------------------------------|
| number or boolean                   | one, named as the column, with that value                                 |
| text, dictionary (categorical)      | ``column=value``, with value 1                                            |
| list of whole numbers or of texts   | ``column=element`` for every element, with value 1                        |
| list of floats, all of one length   | ``column[0]``, ``column[1]``, ... with these values                       |
| map from text or whole number       | ``column=key`` with the number there as value                             |

Parquet stores a dictionary of texts as a dictionary, but a dictionary of whole numbers as these numbers. Codes of
categories must therefore be converted to text. Names are hashed as in :mod:`hogwild.data.hashing`, in no namespace.
Nulls and zeros make no entries. Features in the same column of the result are added. Rows are counted from 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hogwild.data.csr import NO_WEIGHTS, Array, CSRRows
from hogwild.data.hashing import columns, merge_duplicates
from hogwild.data.reader import Divided, Reader, ReadOptions
from hogwild.data.readers.parquet_columns import Column, Converter, Entries, converter, numbers
from hogwild.errors import DataError, HogwildError, MissingExtraError
from hogwild.machine import usable_cores

if TYPE_CHECKING:
    import pyarrow

_MOST_ROWS = 1 << 16  # Largest number of rows that are read at a time.
_MEMORY_PER_ENTRY = 64  # Bytes of memory per entry during the conversion from the table to rows.
_LEAST_PER_ENTRY = 4  # Smallest number of bytes of an entry in the table: a code or a narrow number.
_UNPACKED = 8  # Estimated ratio of the size of a table in memory to its size in the file.
_BUFFER = 1 << 16  # Bytes of a column that are read at a time, instead of the whole column.
# Largest number of bytes and elements of parts of the footer, since a damaged footer may claim any size.
_LARGEST_FOOTER_PART = 1 << 26
_AGAIN = "Make or fetch the file again."


def read(
    path: Path, reading: ReadOptions, piece_bytes: int, extent: tuple[int, int] | None = None
) -> Iterator[CSRRows]:
    """Yield the rows of a Parquet file, in order and checked, with ``2**reading.bits`` columns.

    With an extent, these are the rows of the row groups from the first number up to the second.

    >>> import tempfile, pyarrow, pyarrow.parquet
    >>> table = pyarrow.table({"label": [1, 0], "age": [30, None], "city": ["Ulm", "Bonn"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pyarrow.parquet.write_table(table, Path(folder, "a.parquet"))
    ...     (rows,) = read(Path(folder, "a.parquet"), ReadOptions(), 1 << 20)
    >>> rows.labels, rows.indptr, rows.values
    (array([1., 0.]), array([0, 2, 3]), array([30.,  1.,  1.], dtype=float32))
    """
    with _opened(path) as file:
        with _as_data_error(path):
            schema, expected, done = file.schema_arrow, file.metadata.num_rows, 0
            batches = file.iter_batches(
                batch_size=_batch_rows(path, schema, expected, piece_bytes), use_threads=usable_cores() > 1,
                row_groups=None if extent is None else list(range(*extent)),
            )  # fmt: skip
        if expected == 0:
            raise DataError("the table has no rows", path=path, remedy="Check that it was written completely.")
        plan = _plan(path, schema, reading)
        if extent is not None:
            done, expected = (_rows_before(path, file, group) for group in extent)
        while (batch := _next(path, batches)) is not None:
            for part in _slices(batch, piece_bytes):
                yield _rows(plan, part, done)
                done += part.num_rows
    if done != expected:
        raise DataError(f"the table has {done:,} rows but says {expected:,}", path=path, remedy=_AGAIN)


def _rows_before(path: Path, file: Any, group: int) -> int:
    with _as_data_error(path):
        return sum(file.metadata.row_group(number).num_rows for number in range(group))


def row_groups(path: Path) -> int:
    """Return the number of row groups of a file."""
    with _opened(path) as file:
        return max(1, int(file.metadata.num_row_groups))


PARQUET = Reader("parquet", (".parquet", ".pq"), read, divided=Divided(row_groups, read))


@dataclass(frozen=True, slots=True)
class _Plan:
    """Use of each column of the table."""

    path: Path
    features: int
    label: Column | None  # Label column. None means that every row is unlabelled.
    weight: Column | None
    converters: tuple[tuple[Column, Converter], ...]
    unlabelled: bool


@contextmanager
def _as_data_error(path: Path) -> Iterator[None]:
    """Convert any exception of pyarrow to a ``DataError`` about the file."""
    try:
        yield
    except HogwildError:
        raise
    except FileNotFoundError:
        raise DataError("there is no such file", path=path, remedy="Check the path.") from None
    except IsADirectoryError:
        raise DataError("this is a folder, not a Parquet file", path=path, remedy="Name the file in it.") from None
    except PermissionError:
        raise DataError("the file may not be read", path=path, remedy="Check its permissions.") from None
    # The exception is one of Arrow, or ValueError, OverflowError and others from its bindings.
    except Exception as error:
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise DataError(f"the Parquet file is damaged ({reason})", path=path, remedy=_AGAIN) from None


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("Reading Parquet", "pyarrow", "parquet") from None
    with _as_data_error(path):
        with path.open("rb") as file:
            size, first = path.stat().st_size, file.read(4)
        if size == 0:
            raise DataError("the file is empty", path=path, remedy="Check that it was written completely.")
        if first not in (b"PAR1", b"PARE"):
            raise DataError("this is not a Parquet file", path=path, remedy="Check the path, or name the format.")
        opened = pq.ParquetFile(
            path,
            pre_buffer=False,
            buffer_size=_BUFFER,
            page_checksum_verification=True,
            thrift_string_size_limit=_LARGEST_FOOTER_PART,
            thrift_container_size_limit=_LARGEST_FOOTER_PART,
        )
    with opened:
        yield opened


def _next(path: Path, batches: Iterator[Any]) -> pyarrow.RecordBatch | None:
    with _as_data_error(path):
        batch = next(batches, None)
        if batch is not None:
            # This call checks that offsets are within bounds, that text is valid and that dictionary codes exist.
            batch.validate(full=True)
        return batch


def _batch_rows(path: Path, schema: pyarrow.Schema, n_rows: int, piece_bytes: int) -> int:
    """Return the number of rows to read at a time, from an estimate of their size.

    The footer has more exact sizes of its row groups, but pyarrow can crash if the footer is damaged.
    """
    per_row = _UNPACKED * path.stat().st_size // max(1, n_rows) + _MEMORY_PER_ENTRY * len(schema)
    return int(min(_MOST_ROWS, max(1, piece_bytes // per_row)))


def _slices(batch: pyarrow.RecordBatch, piece_bytes: int) -> Iterator[Any]:
    """Yield parts of a batch that surely make small enough pieces, since lists may be longer than estimated."""
    entries = sum(column.nbytes // _LEAST_PER_ENTRY for column in batch.columns)
    parts = max(1, min(batch.num_rows, _MEMORY_PER_ENTRY * entries // piece_bytes))
    size = -(-batch.num_rows // parts)
    for start in range(0, batch.num_rows, max(1, size)):
        yield batch.slice(start, size)


def _plan(path: Path, schema: pyarrow.Schema, reading: ReadOptions) -> _Plan:
    features, names = columns(reading.bits), list(schema.names)
    for name in names:
        if names.count(name) > 1:
            raise DataError("several columns have this name", path=path, column=name, remedy="Rename them.")
    label = _special(path, schema, "label", reading.label, features, optional=reading.unlabelled)
    weight = _special(path, schema, "weight", reading.weight, features) if reading.weight else None
    used = {column.name for column in (label, weight) if column}
    made = []
    for field in schema:
        if field.name not in used:
            column = Column(path, field.name, features - 1)
            made.append((column, converter(column, field.type)))
    if not made:
        raise DataError("there are no columns besides the label", path=path, remedy="Add columns to learn from.")
    return _Plan(path, features, label, weight, tuple(made), reading.unlabelled)


def _special(
    path: Path, schema: pyarrow.Schema, role: str, name: str, features: int, optional: bool = False
) -> Column | None:
    """Return the column with the label or the weight."""
    if name in schema.names:
        column = Column(path, name, features - 1)
        column.check_numeric(schema.field(name).type, role)
        return column
    if optional:
        return None
    there = ", ".join(map(repr, schema.names[:20])) + (", ..." if len(schema.names) > 20 else "")
    raise DataError(
        f"there is no {role} column {name!r}", path=path, remedy=f"Name the {role} column. There are: {there}."
    )


def _rows(plan: _Plan, batch: pyarrow.RecordBatch, first_row: int) -> CSRRows:
    labels, weights = np.zeros(batch.num_rows), NO_WEIGHTS
    if plan.label is not None:
        labels, present = numbers(plan.label, batch.column(plan.label.name), first_row)
        if not plan.unlabelled:
            _refuse(plan.label, ~present, first_row, "the label is missing", "Fill it in, or leave the row out.")
    if plan.weight is not None:
        weights, present = numbers(plan.weight, batch.column(plan.weight.name), first_row)
        _refuse(plan.weight, ~present, first_row, "the weight is missing", "Fill it in; 1 is neutral.")
        _refuse(plan.weight, weights < 0, first_row, "the weight is negative", "A weight is 0 or more.")
        weights = weights.astype(np.float32)
    parts = [convert(batch.column(column.name), first_row) for column, convert in plan.converters]
    indptr, indices, values = _joined(parts, batch.num_rows)
    merge_duplicates(indptr, indices, values)
    stop = int(indptr[-1])
    rows = CSRRows(indptr, indices[:stop], values[:stop], labels, weights, plan.features, "sparse")
    _check_sums(plan, rows, first_row)
    return rows


def _refuse(column: Column, bad: Array, first_row: int, what: str, remedy: str) -> None:
    if bad.any():
        raise column.error(what, first_row + int(np.argmax(bad)), remedy)


def _joined(parts: list[Entries], n_rows: int) -> tuple[Array, Array, Array]:
    """Return the entries of all columns, row by row."""
    totals = np.zeros(n_rows, np.int64)
    for part in parts:
        totals += part.counts
    indptr = np.concatenate([[0], np.cumsum(totals)])
    indices, values = np.empty(indptr[-1], np.uint32), np.empty(indptr[-1], np.float32)
    free = indptr[:-1].copy()
    for part in parts:
        before = np.cumsum(part.counts) - part.counts
        where = np.repeat(free - before, part.counts) + np.arange(len(part.indices))
        indices[where], values[where] = part.indices, part.values
        free += part.counts
    return indptr, indices, values


def _check_sums(plan: _Plan, rows: CSRRows, first_row: int) -> None:
    finite = np.isfinite(rows.values)
    if not finite.all():
        row = int(np.searchsorted(rows.indptr, int(np.argmin(finite)), side="right")) - 1
        raise DataError(
            "features of one column add up to more than 32 bits hold",
            path=plan.path,
            row=first_row + row,
            remedy="Scale the features down, or hash to more bits. Rows are counted from 0.",
        )
