"""Data frames of pandas, polars and Arrow as rows, where they have other columns than numbers or a column of labels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from hogwild.data.arrays import label_column, weight_column
from hogwild.data.csr import CSRRows, compact
from hogwild.data.field_vocabulary import FieldVocabulary
from hogwild.data.tables.column_entries import is_number
from hogwild.data.tables.encode import TableEncoder
from hogwild.data.tables.table_encoding import TableEncoding
from hogwild.data.tables.table_reader import encoding_for, flat
from hogwild.errors import DataError

if TYPE_CHECKING:
    import pyarrow

    from hogwild.data.reader import ReadOptions


def as_table(source: Any, reading: ReadOptions) -> pyarrow.Table | None:
    """Return a data frame that has to be encoded as an Arrow table; None for frames of numbers alone.

    A frame of numbers alone is encoded if the options have a label, roles or an encoding.

    >>> from hogwild.data.reader import ReadOptions
    >>> import pandas
    >>> as_table(pandas.DataFrame({"city": ["Ulm"]}), ReadOptions()).num_rows
    1
    >>> as_table(pandas.DataFrame({"age": [30]}), ReadOptions()) is None
    True
    """
    try:
        import pyarrow as pa
    except ImportError:
        return None
    try:
        table = pa.table(source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise DataError(
            f"the data frame cannot be made into a table ({reason})",
            remedy="Give each column values of one type: numbers, texts, categories or lists of them.",
        ) from None
    return table if reading.encodes_numbers or not all(is_number(kind) for kind in table.schema.types) else None


def rows_of_table(
    table: pyarrow.Table, labels: ArrayLike | None, weights: ArrayLike | None, reading: ReadOptions
) -> tuple[CSRRows, TableEncoding, FieldVocabulary | None]:
    """Return the rows of a table in memory, the encoding that made them, and its vocabulary if it has fields.

    Labels and weights may be given apart from the table.
    """
    if table.num_rows == 0:
        raise DataError("the table has no rows", remedy="Give one row per example.")
    table = flat(table)
    apart = labels is not None or (reading.unlabelled and reading.encoding is None and reading.label is None)
    encoding = encoding_for(table, reading, apart=apart)
    vocabulary = None
    if encoding.fields is not None:
        vocabulary = FieldVocabulary() if reading.table is None else reading.table
    rows = TableEncoder(encoding, None, reading.unlabelled, vocabulary=vocabulary)(table)
    if vocabulary is not None:
        vocabulary.close()
    if labels is not None:
        rows = replace(rows, labels=label_column(labels, len(rows), False, None))
    if weights is not None:
        rows = replace(rows, weights=weight_column(weights, len(rows), None))
    rows = compact(rows)
    if (rows.values == 1).all():
        rows = replace(rows, values=np.empty(0, np.float32), layout="binary")
    return rows, encoding, vocabulary
