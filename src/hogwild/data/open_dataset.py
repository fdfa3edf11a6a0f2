"""Opening of data: from arrays, data frames, text, tables, records or packed folders, whose format is detected."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from hogwild.data.dataset import Dataset
from hogwild.data.in_memory import InMemoryDataset
from hogwild.data.reader import Reader, ReadOptions
from hogwild.errors import DataError, ParameterError

if TYPE_CHECKING:
    from hogwild.data.sources import FileSource


def open(
    source: Any,
    labels: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    *,
    label: str | None = None,
    reading: ReadOptions | None = None,
    memory: int | str | None = None,
    shuffle: bool = True,
    readers: Sequence[Reader] | None = None,
) -> Dataset:
    """Open data: files, a packed folder, arrays, or a data set that is open already.

    Files are read into memory and shuffled. Arrays come with their labels and are not copied. For the duration of a
    run, many rows get a shuffled copy if there is memory for it.

    Parameters
    ----------
    source : path, list of paths, array, data frame or Dataset
        A file, a packed folder, a folder of Parquet files, several files of one format, a sparse or dense matrix, or an
        open data set. A file may be an address such as ``"s3://bucket/file"`` or ``"https://host/file"``, a pipe, or
        ``"-"`` for standard input. Columns of data frames that are not numbers are encoded as those of files are
        (:class:`hogwild.data.ColumnRoles`).
    labels : array, optional
        Label of each row, for arrays only.
    weights : array, optional
        Weight of each row, for arrays only. By default every row weighs 1.
    label : str, optional
        Name or number (from 1) of the column with the labels, for tables: CSV, JSON lines, Arrow, Parquet, data frames.
    reading : ReadOptions, optional
        Options of reading, such as the format and the number of features.
    memory : int or str, optional
        Largest resident memory of the process, in bytes or as text such as ``"2GiB"``.
    shuffle : bool, default True
        Whether files are shuffled. Predictions need the order of the file, and therefore False.
    readers : sequence of Reader, optional
        The known file formats. By default all formats of :mod:`hogwild.data.readers`.

    Returns
    -------
    Dataset
        The open data set.

    Raises
    ------
    DataError
        If the data cannot be read, are invalid or do not fit into memory.
    ParameterError
        If labels or weights are given with files, or if ``memory`` is too small.

    Examples
    --------
    >>> data = open([[0.0, 2.0], [1.0, 0.0]], [1, -1])
    >>> data.n_rows, data.n_features
    (2, 2)
    """
    reading = reading or ReadOptions()
    if label is not None:
        reading = replace(reading, label=label)
    paths = paths_of(source)
    if paths is None and not _is_dataset(source):
        return _from_arrays(source, labels, weights, reading)
    if labels is not None or weights is not None:
        raise ParameterError("Labels and weights are given with arrays. Files and data sets have their own.")
    if paths is None:
        if label is not None:
            raise ParameterError("An open data set has its labels: name their column when you open it, not here.")
        as_dataset: Dataset = source
        return as_dataset
    from hogwild.data.open_paths import open_paths  # with readers, of which arrays need none

    return open_paths(paths, reading, memory, readers, shuffle=shuffle)


def as_dataset(source: object, reading: ReadOptions | None = None) -> Dataset:
    """Open any first argument of ``open``, or a tuple ``(X, y)`` or ``(X, y, weights)`` of arrays.

    >>> as_dataset(([[0.0, 2.0], [1.0, 0.0]], [1, -1])).n_rows
    2
    """
    given = source if isinstance(source, tuple) and paths_of(source) is None else (source,)
    if not 1 <= len(given) <= 3:
        raise ParameterError(f"Rows in memory are (X, y) or (X, y, weights). Got a tuple of {len(given)} instead.")
    return open(*given, reading=reading)


def paths_of(source: object) -> list[FileSource] | None:
    """Return the paths and addresses that a source consists of, or None for any other source."""
    if isinstance(source, (str, os.PathLike)):
        return [source]
    if isinstance(source, (list, tuple)) and source and all(isinstance(part, (str, os.PathLike)) for part in source):
        return list(source)
    return None


def _is_dataset(source: object) -> bool:
    return isinstance(source, Dataset)


def _from_arrays(
    source: object, labels: ArrayLike | None, weights: ArrayLike | None, reading: ReadOptions
) -> InMemoryDataset:
    from hogwild.data.arrays import rows_from_arrays
    from hogwild.data.frames import in_memory_table, matrix_of

    source = in_memory_table(source)
    matrix = None if reading.encodes_numbers else matrix_of(source)
    if matrix is None and hasattr(source, "__arrow_c_stream__"):
        from hogwild.data.tables.frames import as_table, rows_of_table  # with all that encodes tables

        table = as_table(source, reading)
        if table is not None:
            encoded, encoding, vocabulary = rows_of_table(table, labels, weights, reading)
            return InMemoryDataset(encoded, shuffled=False, encoding=encoding, table=vocabulary)
    if reading.label is not None and labels is None and not reading.unlabelled:
        raise ParameterError("A label column is named for tables and data frames. Give the labels of arrays apart.")
    rows = rows_from_arrays(source if matrix is None else matrix, labels, weights, unlabelled=reading.unlabelled)
    if reading.features is not None and reading.features != rows.features:
        what = f"there are {rows.features:,} columns, and {reading.features:,} are expected"
        raise DataError(what, remedy="Give the same columns in the same order.")
    return InMemoryDataset(rows, shuffled=False)
