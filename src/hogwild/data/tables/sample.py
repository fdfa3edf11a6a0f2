"""Sample of the rows of a table, from all of its parts, from which means and quantiles are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow

    from hogwild.data.tables.table_encoding import TableEncoding

SAMPLE_ROWS = 2**17  # Rows of a sample, at most.
PLACES = 16  # Places of the data that a sample is from.


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of a table, and the schema of all its columns."""

    schema: pyarrow.Schema
    batches: list[pyarrow.RecordBatch]


def evenly(count: int, wanted: int) -> list[int]:
    """Return at most ``wanted`` numbers below ``count``, in the middles of parts of equal length.

    >>> evenly(3, 5), evenly(10, 4)
    ([0, 1, 2], [1, 3, 6, 8])
    """
    parts = min(count, wanted)
    return [(2 * part + 1) * count // (2 * parts) for part in range(parts)]


def spread_rows(batch: pyarrow.RecordBatch, encoding: TableEncoding, most: int = SAMPLE_ROWS) -> pyarrow.RecordBatch:
    """Return ``most`` rows of a batch, or fewer if it has fewer, at equal distances, of columns that need statistics.

    Numbers can be taken from any batch. Arrow cannot take rows of every type.
    """
    import pyarrow as pa

    wanted = {column.name for column in encoding.columns if column.needs_statistics}
    batch = batch.select([name for name in batch.schema.names if name in wanted])
    return batch if batch.num_rows <= most else batch.take(pa.array(evenly(batch.num_rows, most)))
