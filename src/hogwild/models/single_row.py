"""Non-zeros of a single row, for scores without compiled code and without a data set.

A server scores one row at a time. This takes NumPy alone and some microseconds. Everything unusual, such as a value
that is not finite, is left to the path of many rows, whose checks name the row, the column and the remedy.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hogwild.errors import DataError

LARGEST = float(np.finfo(np.float32).max)  # Values beyond single precision are refused, as in many rows.
NUMBERS = "?bBhHiIlLqQefd"  # Types that double precision holds, by their characters in NumPy.
BY_NUMBER = (
    "Give the values by the numbers of their columns, such as {3: 1.0, 17: 0.5}. "
    "A model of a table takes a frame with its columns, such as pandas.DataFrame([row])."
)


class SingleRow(NamedTuple):
    """Columns of a row, each once, and their values; all other values are zero."""

    columns: NDArray[np.integer[Any]]
    values: NDArray[np.float64]
    squares: float  # Sum of the squares of the values.


def single_row(data: object, features: int) -> SingleRow | None:
    """Return the row that the data consists of, or None if it does not, or is to be checked as many rows are.

    A row is a mapping from columns to values, a dense array or nested list, or a SciPy CSR matrix.

    >>> single_row({2: 0.5}, 3)
    SingleRow(columns=array([2]), values=array([0.5]), squares=0.25)
    >>> single_row(np.array([[0.0, 4.0]]), 2)
    SingleRow(columns=array([1]), values=array([4.]), squares=16.0)
    >>> single_row(np.zeros((2, 2)), 2) is single_row(np.zeros((1, 3)), 2) is None
    True
    """
    kind = type(data)
    if kind is np.ndarray:
        return _of_array(data, features)
    if kind is list:
        return _of_list(data, features)
    sparse = sys.modules.get("scipy.sparse")  # It is imported where there is a matrix of SciPy.
    if sparse is not None and sparse.issparse(data):
        return _of_csr(data, features)
    return _of_mapping(data, features) if isinstance(data, Mapping) else None


def every(truths: NDArray[np.bool_]) -> bool:
    """Return whether all are true: what ``all`` does, in a tenth of its time for short arrays."""
    return b"\0" not in truths.tobytes()


def _of_array(array: Any, features: int) -> SingleRow | None:
    if array.shape != (1, features) or array.dtype.char not in NUMBERS:
        return None
    row = array[0]
    columns = row.nonzero()[0]
    return _checked(columns, row[columns])


def _of_list(rows: Any, features: int) -> SingleRow | None:
    if len(rows) != 1 or type(rows[0]) is not list or len(rows[0]) != features:
        return None
    try:
        return _of_array(np.array(rows), features)
    except ValueError:  # Some parts are lists themselves.
        return None


def _of_csr(matrix: Any, features: int) -> SingleRow | None:
    if matrix.format != "csr" or matrix.shape != (1, features):
        return None
    indptr, columns, values = matrix.indptr, matrix.indices, matrix.data
    entries = len(columns)
    if indptr.tolist() != [0, entries] or len(values) != entries:
        return None
    if columns.dtype.kind != "i" or values.dtype.char not in NUMBERS or columns.ndim != 1 or values.ndim != 1:
        return None
    # Columns that rise are within the features if the first and the last are.
    if entries and not (columns[0] >= 0 and columns[-1] < features):
        return None
    if not every(columns[1:] > columns[:-1]):
        return None
    return _checked(columns, values)


def _of_mapping(row: Mapping[Any, Any], features: int) -> SingleRow:
    try:
        columns, values = np.array(list(row)), np.array(list(row.values()), np.float64)
    except (ValueError, TypeError, OverflowError) as reason:
        raise DataError(f"the row cannot be made into an array ({reason})", row=0, remedy=BY_NUMBER) from None
    if not len(columns):
        return SingleRow(columns.astype(np.int64), values, 0.0)
    if columns.dtype.kind != "i" or columns.ndim != 1 or values.ndim != 1:
        raise DataError("the columns of the row are not whole numbers", row=0, remedy=BY_NUMBER)
    low, high = min(row), max(row)  # in less time than arrays take
    if low < 0 or high >= features:
        what = f"there is no column {low if low < 0 else high}: the model has {features:,}, numbered from 0"
        raise DataError(what, row=0, remedy="Leave out columns that the model does not know.")
    found = _checked(columns, values)
    if found is None:
        column = columns[~(np.abs(values) <= LARGEST)][0]
        raise DataError(f"the value {row[int(column)]} is not finite in single precision", row=0, column=int(column))
    return found


def _checked(columns: NDArray[Any], values: NDArray[Any]) -> SingleRow | None:
    """Return the row, unless its values have to be looked at one by one: they may not be finite in single precision."""
    if values.dtype.char != "d":
        values = values.astype(np.float64)
    squares = float(values.dot(values))
    # No value is larger than the root of the squares. The comparison is false for NaN.
    return SingleRow(columns, values, squares) if squares <= LARGEST * LARGEST else None
