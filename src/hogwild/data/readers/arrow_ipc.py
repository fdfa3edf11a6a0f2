"""Reader of Arrow files: the file and stream formats of Arrow IPC, and Feather (version 2), which is the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hogwild.data.reader import Reader, ReadOptions
from hogwild.data.tables.arrow_errors import arrow_errors
from hogwild.data.tables.encode import one_batch
from hogwild.data.tables.sample import SAMPLE_ROWS, evenly, spread_rows
from hogwild.data.tables.table_reader import Batch, TableFormat, flat
from hogwild.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    import pyarrow

_AGAIN = "Make or fetch the file again."
_FILE, _FEATHER_1 = b"ARROW1", b"FEA1"


def batches(path: Path, reading: ReadOptions, piece_bytes: int) -> Iterator[Batch]:
    """Yield the rows of a file as Arrow batches, as they are stored."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtraError("Reading Arrow files", "pyarrow", "parquet") from None
    with arrow_errors(path, "Arrow"), path.open("rb") as file:
        first = file.read(6)
        if not first:
            raise DataError("the file is empty", path=path, remedy="Check that it was written completely.")
        if first.startswith(_FEATHER_1):
            raise DataError("this is Feather of version 1", path=path, remedy="Write it again as version 2.")
        source = pa.OSFile(str(path))  # Arrow's threads read it without Python, which may be ending.
        for batch in _stored(pa.ipc.open_file(source) if first == _FILE else pa.ipc.open_stream(source)):
            # This call checks that offsets are within bounds, that text is valid and that dictionary codes exist.
            batch.validate(full=True)
            if batch.num_rows:
                yield Batch(one_batch(flat(pa.Table.from_batches([batch]))))


def _stored(reader: Any) -> Iterator[Any]:
    import pyarrow as pa

    if isinstance(reader, pa.ipc.RecordBatchFileReader):
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)
    else:
        yield from reader


def _spread(path: Path, reading: ReadOptions, places: int) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow as pa

    assert reading.encoding is not None
    with arrow_errors(path, "Arrow"), path.open("rb") as file:
        if file.read(len(_FILE)) != _FILE:
            return  # A stream is read in order.
        reader = pa.ipc.open_file(pa.OSFile(str(path)))
        sizes, some, most = [], [], SAMPLE_ROWS // places
        for number in evenly(reader.num_record_batches, places):
            batch = reader.get_batch(number)
            batch.validate(full=True)
            sizes.append(batch.num_rows)
            some.append(spread_rows(one_batch(flat(pa.Table.from_batches([batch]))), reading.encoding, most))
    for size, rows in zip(sizes, some, strict=True):  # Each batch counts by its rows.
        yield spread_rows(rows, reading.encoding, -(-most * size // max(most, *sizes)))


ARROW_FORMAT = TableFormat(batches, spread=_spread)
ARROW = Reader(
    "arrow", (".arrow", ".feather", ".ipc", ".arrows"), ARROW_FORMAT.read, tabular=True, fit=ARROW_FORMAT.fitted
)
