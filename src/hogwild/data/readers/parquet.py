"""Reader of Parquet tables: one column is the label, optionally one is the weight, and all others make features.

| column                              | features                                                                  |
|-------------------------------------|---------------------------------------------------------------------------|
| number or boolean                   | one, named as the column; numbers are scaled as those of other tables are |
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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hogwild.data.csr import CSRRows
from hogwild.data.reader import Divided, Reader, ReadOptions
from hogwild.data.tables.arrow_errors import arrow_errors
from hogwild.data.tables.partitions import with_partition
from hogwild.data.tables.sample import PLACES, SAMPLE_ROWS, evenly, spread_rows
from hogwild.data.tables.table_reader import Batch, TableFormat
from hogwild.errors import DataError, MissingExtraError
from hogwild.machine import usable_cores

if TYPE_CHECKING:
    import pyarrow

_MOST_ROWS = 1 << 16  # Largest number of rows that are read at a time.
_MEMORY_PER_ENTRY = 64  # Bytes of memory per entry during the conversion from the table to rows.
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
    >>> table = pyarrow.table({"label": [1, 0], "age": [30, 40], "city": ["Ulm", "Bonn"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pyarrow.parquet.write_table(table, Path(folder, "a.parquet"))
    ...     (rows,) = read(Path(folder, "a.parquet"), ReadOptions(), 1 << 20)
    >>> rows.labels, rows.indptr, rows.values
    (array([1., 0.]), array([0, 2, 4]), array([-1.,  1.,  1.,  1.], dtype=float32))
    """
    reading = PARQUET_FORMAT.fitted([path], reading)
    with _opened(path) as file:
        done, expected = 0, int(file.metadata.num_rows)
        if extent is not None:
            done, expected = (_rows_before(path, file, group) for group in extent)
        batches = _batches(path, reading, file, piece_bytes, extent)
        for rows in PARQUET_FORMAT.encoded(path, reading, batches, piece_bytes, done):
            yield rows
            done += len(rows)
    if done != expected:
        raise DataError(f"the table has {done:,} rows but says {expected:,}", path=path, remedy=_AGAIN)


def batches(path: Path, reading: ReadOptions, piece_bytes: int) -> Iterator[Batch]:
    """Yield the rows of a Parquet file as Arrow batches."""
    with _opened(path) as file:
        yield from _batches(path, reading, file, piece_bytes, None)


def _batches(
    path: Path, reading: ReadOptions, file: Any, piece_bytes: int, extent: tuple[int, int] | None
) -> Iterator[Batch]:
    with arrow_errors(path, "Parquet"):
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
        found = file.iter_batches(
            batch_size=_batch_rows(path, schema, n_rows, piece_bytes), use_threads=usable_cores() > 1,
            row_groups=None if extent is None else list(range(*extent)),
        )  # fmt: skip
    if n_rows == 0:
        raise DataError("the table has no rows", path=path, remedy="Check that it was written completely.")
    while (batch := _next(path, found)) is not None:
        yield Batch(with_partition(batch, path, reading.folder))


def spread(path: Path, reading: ReadOptions, places: int) -> Iterator[pyarrow.RecordBatch]:
    """Yield rows from some row groups of a file, of columns that need statistics alone."""
    assert reading.encoding is not None
    needed = {column.name for column in reading.encoding.columns if column.needs_statistics}
    with _opened(path) as file:
        with arrow_errors(path, "Parquet"):
            names = [name for name in file.schema_arrow.names if name in needed]
            if len(names) < len(needed):
                return  # Columns within structures, and those of folders, are in the first rows.
            groups = evenly(int(file.metadata.num_row_groups), places)
            batches = file.iter_batches(_MOST_ROWS, row_groups=groups, columns=names, use_threads=usable_cores() > 1)
            share = max(1, SAMPLE_ROWS // PLACES * places * _MOST_ROWS // max(1, int(file.metadata.num_rows)))
        while (batch := _next(path, batches)) is not None:
            yield spread_rows(batch, reading.encoding, -(-share * batch.num_rows // _MOST_ROWS))


def _rows_before(path: Path, file: Any, group: int) -> int:
    with arrow_errors(path, "Parquet"):
        return sum(file.metadata.row_group(number).num_rows for number in range(group))


def row_groups(path: Path) -> int:
    """Return the number of row groups of a file."""
    with _opened(path) as file:
        return max(1, int(file.metadata.num_row_groups))


PARQUET_FORMAT = TableFormat(batches, label_named=True, spread=spread)
PARQUET = Reader(
    "parquet", (".parquet", ".pq"), read, divided=Divided(row_groups, read), tabular=True, fit=PARQUET_FORMAT.fitted
)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("Reading Parquet", "pyarrow", "parquet") from None
    with arrow_errors(path, "Parquet"):
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
    with arrow_errors(path, "Parquet"):
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
