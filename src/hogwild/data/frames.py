"""Data frames and data sets of other libraries as matrices of numbers, without a copy where none is needed.

Rows here are stored one after the other, and columns of a data frame each by itself, so that a frame with several
columns is copied once. What is used as it is:

- a pandas frame around one array whose rows are stored one after the other (``DataFrame(array, copy=False)``),
- a frame of Arrow, polars or another library with a single column of numbers in one piece,
- a column of lists of one length, such as embeddings, in one piece.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.errors import DataError

if TYPE_CHECKING:
    import pyarrow

_BATCH_ROWS = 8192  # Rows that are copied at a time, so that a batch of them stays in the cache.


def in_memory_table(source: Any) -> Any:
    """Return data sets of Hugging Face and Ray, batches and streams of batches as an Arrow table; others as they are.

    >>> in_memory_table([[1.0]])
    [[1.0]]
    """
    batches = hasattr(source, "iter_batches") and hasattr(source, "schema")
    rows = hasattr(source, "with_format") and hasattr(source, "features")
    once = hasattr(source, "read_all") and hasattr(source, "__arrow_c_stream__")
    single = hasattr(source, "__arrow_c_array__") and hasattr(source, "schema")
    if not (batches or rows or once or single):
        return source
    try:
        import pyarrow as pa
    except ImportError:
        return source
    try:
        if batches and not single:  # of Ray, which gives its blocks as they are
            return pa.concat_tables(list(source.iter_batches(batch_format="pyarrow", batch_size=None)))
        if rows:  # of Hugging Face, which is a table, and the numbers of its rows where some were selected
            return source.with_format("arrow")[:]
        return source.read_all() if once else pa.Table.from_batches([source])
    except (pa.ArrowException, TypeError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise DataError(f"the data set cannot be read as a table ({reason})", remedy="Give arrays.") from None


def matrix_of(frame: Any) -> Array | None:
    """Return a data frame of numbers alone as a matrix; None for other frames, and for what is no frame.

    >>> import pyarrow
    >>> matrix_of(pyarrow.table({"age": [30, 40], "height": [1.8, 1.7]}))
    array([[30. ,  1.8],
           [40. ,  1.7]])
    >>> matrix_of(pyarrow.table({"city": ["Ulm"]})) is None
    True
    """
    if not hasattr(frame, "__arrow_c_stream__"):
        return None
    if hasattr(frame, "to_numpy") and not hasattr(frame, "columns"):  # of pandas, polars or Arrow
        raise DataError(
            "the rows are a single column, not a table with columns",
            remedy="Give a table, such as series.to_frame(), with one row per example.",
        )
    if hasattr(frame, "to_numpy") and _is_one_array(set(frame.dtypes)):  # Arrow would copy each column of pandas.
        values: Array = frame.to_numpy()
        return values
    try:
        import pyarrow as pa
    except ImportError:
        return None
    try:
        table = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError):
        return None  # The encoder of tables raises the error that tells why.
    widths = [_width(kind) for kind in table.schema.types]
    if not widths or 0 in widths or table.num_rows == 0:
        return None
    if len(widths) == 1 and table.column(0).num_chunks == 1:
        return _values(table.column(0).chunk(0)).reshape(table.num_rows, widths[0])
    return _copied(table, widths)


def _is_one_array(kinds: set[Any]) -> bool:
    """Return whether all columns of a pandas frame have one type of NumPy's numbers."""
    return len(kinds) == 1 and all(isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in kinds)


def _copied(table: pyarrow.Table, widths: list[int]) -> Array:
    """Return the columns side by side, copied once, in the type that an array of all of them has."""
    kinds = [_values(column.slice(0, 1).combine_chunks()).dtype for column in _nulls_first(table)]
    matrix = np.empty((table.num_rows, sum(widths)), np.result_type(*kinds))
    start = 0
    for batch in table.to_batches(_BATCH_ROWS):
        stop, at = start + batch.num_rows, 0
        for column, width in zip(batch.columns, widths, strict=True):
            matrix[start:stop, at : at + width] = _values(column).reshape(batch.num_rows, width)
            at += width
        start = stop
    return matrix


def _nulls_first(table: pyarrow.Table) -> list[Any]:
    """Return the columns, each from its first missing value on if it has one, which decides its type in NumPy."""
    found = []
    for column in table.columns:
        first = column.is_null().index(True).as_py() if column.null_count else 0
        found.append(column.slice(max(0, first)))
    return found


def _width(kind: pyarrow.DataType) -> int:
    """Return the number of columns that a column of this type stands for; 0 if it does not hold numbers."""
    from pyarrow import types

    if types.is_fixed_size_list(kind):
        return int(kind.list_size) if _width(kind.value_type) == 1 else 0
    return int(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _values(column: pyarrow.Array) -> Array:
    """Return the numbers of a piece of a column, not copied unless some are missing, or are single bits."""
    from pyarrow import types

    if types.is_fixed_size_list(column.type):
        if column.null_count:
            raise DataError("a list is missing", row=int(column.is_null().index(True).as_py()), remedy="Fill it.")
        column = column.flatten()
    values: Array = column.to_numpy(zero_copy_only=False)
    return values.astype(bool) if values.dtype == object and types.is_boolean(column.type) else values
