"""Conversion of a user's arrays to checked rows, without a copy where none is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hogwild.data.array_validation import ENCODE, FINITE, as_floats, first_not_finite, not_finite, require_matrix
from hogwild.data.csr import NO_INDICES, NO_WEIGHTS, Array, CSRRows
from hogwild.data.from_scipy import compressed_rows
from hogwild.errors import DataError


def rows_from_arrays(
    X: Any, y: Any = None, weights: Any = None, *, unlabelled: bool = False, path: Path | None = None
) -> CSRRows:
    """Check a matrix, labels and weights, and return them as rows.

    ``X`` is a SciPy sparse matrix or array, a dense array or a data frame. Errors name ``path`` if the arrays come from
    a file. The function does not copy a sorted CSR matrix or a C-contiguous array of float32 or float64.

    >>> rows = rows_from_arrays(np.array([[0.0, 2.0], [1.0, 0.0]]), [1, 0])
    >>> len(rows), rows.features, rows.layout, rows.labels
    (2, 2, 'dense', array([1., 0.]))
    """
    if hasattr(X, "tocsr"):
        indptr, indices, values = compressed_rows(X, path)
    else:
        X = _dense(X, path)
        indices, values = NO_INDICES, X.reshape(-1)
        indptr = np.arange(0, X.size + 1, X.shape[1], dtype=np.int64)
    return CSRRows(
        indptr,
        indices,
        values,
        _labels(y, len(indptr) - 1, unlabelled, path),
        _weights(weights, len(indptr) - 1, path),
        int(X.shape[1]),
        "dense" if indices is NO_INDICES else "sparse",
    )


def _dense(X: Any, path: Path | None) -> Array:
    array = _array(X, "data", path)
    require_matrix(array, path)
    dense = as_floats(array, path)
    at = int(first_not_finite(dense.reshape(-1)))
    if at >= 0:
        row, column = divmod(at, dense.shape[1])
        raise not_finite(dense[row, column], row, column, path)
    return dense


def _array(numbers: Any, what: str, path: Path | None) -> Array:
    """Convert an array, a list, a column or a data frame to a NumPy array."""
    if isinstance(numbers, np.ma.MaskedArray) and np.ma.is_masked(numbers):
        raise DataError(f"some of the {what} are masked", path=path, remedy="Fill them, or leave their rows out.")
    try:
        return np.asarray(numbers.to_numpy() if hasattr(numbers, "to_numpy") else numbers)
    except (ValueError, TypeError) as error:
        raise DataError(f"the {what} cannot be made into an array ({error})", path=path, remedy=ENCODE) from None


def _column(numbers: Any, what: str, n_rows: int, path: Path | None) -> Array:
    """Return one finite number for each row, as float64."""
    column = _array(numbers, what, path)
    if column.dtype.kind not in "biuf":
        remedy = "numpy.unique(y, return_inverse=True) numbers text labels." if what == "labels" else ENCODE
        raise DataError(f"the {what} are of type {column.dtype}, not numbers", path=path, remedy=remedy)
    if column.shape != (n_rows,):
        raise DataError(
            f"the {what} have the shape {column.shape}, but there are {n_rows:,} rows",
            path=path,
            remedy="Give one number per row, in an array of one dimension.",
        )
    with np.errstate(over="ignore"):
        column = column.astype(np.float64)
    _refuse(column, ~np.isfinite(column), f"the {what[:-1]} {{}} is not finite", FINITE, path)
    return column


def _labels(y: Any, n_rows: int, unlabelled: bool, path: Path | None) -> Array:
    if y is not None:
        return _column(y, "labels", n_rows, path)
    if not unlabelled:
        raise DataError("there are no labels", path=path, remedy="Give one label per row, as y.")
    return np.zeros(n_rows)


def _weights(weights: Any, n_rows: int, path: Path | None) -> Array:
    if weights is None:
        return NO_WEIGHTS
    column = _column(weights, "weights", n_rows, path)
    _refuse(column, column < 0, "the weight {} is negative", "Weights are 0 or more.", path)
    _refuse(column, column > np.finfo(np.float32).max, "the weight {} is too large", "Scale the weights down.", path)
    return column.astype(np.float32)


def _refuse(column: Array, bad: Array, what: str, remedy: str, path: Path | None) -> None:
    if bad.any():
        row = int(bad.argmax())
        raise DataError(f"{what.format(column[row])} (rows count from 0)", path=path, row=row, remedy=remedy)
