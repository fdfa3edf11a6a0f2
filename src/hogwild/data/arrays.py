"""Conversion of a user's arrays and SciPy matrices to checked rows, without a copy where none is needed.

SciPy checks few properties of a matrix when the caller makes it, and none later. Its compiled code trusts its input.
This module therefore checks the structure before it asks SciPy to convert, sort or sum anything.
"""

from __future__ import annotations

from copy import copy
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hogwild.data.csr import NO_INDICES, NO_WEIGHTS, Array, CSRRows
from hogwild.data.min_max import WORTH_A_THREAD
from hogwild.errors import DataError
from hogwild.jit import compiled
from hogwild.machine import available_bytes, usable_cores
from hogwild.parallel import in_parallel

ENCODE = "Encode text, dates and categories as numbers first."
FINITE = "Replace or leave out missing and infinite values."
SMALLER = "Scale the features to values of about one."


def require_matrix(X: Any, path: Path | None) -> None:
    """Raise ``DataError`` unless an array has two dimensions with at least one row and one column.

    >>> require_matrix(np.zeros((2, 3)), None)
    """
    shape = tuple(X.shape)
    if len(shape) != 2 or 0 in shape:
        raise DataError(
            f"the data must be a matrix with at least one row and one column, but its shape is {shape}",
            path=path,
            remedy="Give one row per example: reshape(1, -1) makes a single row, reshape(-1, 1) a single column.",
        )


def as_floats(values: Array, path: Path | None) -> Array:
    """Return the values as a contiguous array of float32 or float64.

    The function returns the array itself if it has one of these types already. Otherwise it converts to float32 if
    float32 holds every number of the element type, and to float64 if not. It raises ``DataError`` for an array without
    numbers.

    >>> as_floats(np.array([True, False]), None)
    array([1., 0.], dtype=float32)
    """
    if values.dtype.kind not in "biuf":
        raise DataError(f"the values are of type {values.dtype}, not numbers", path=path, remedy=ENCODE)
    floats = np.float32 if np.can_cast(values.dtype, np.float32, "safe") else np.float64
    # A value that overflows becomes infinite, and the check for finite values refuses it later.
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values, dtype=floats)


def not_finite(value: float, row: int, column: int, path: Path | None) -> DataError:
    """Return the error for a value that is NaN or infinite, or that overflows in single precision.

    >>> print(not_finite(float("nan"), 3, 1, None))
    row 3, column 1: the value nan is not finite (rows and columns count from 0). Replace or leave out ...
    """
    kind, remedy = ("too large for single precision", SMALLER) if np.isfinite(value) else ("not finite", FINITE)
    what = f"the value {value} is {kind} (rows and columns count from 0)"
    return DataError(what, path=path, row=row, column=column, remedy=remedy)


@compiled
def first_not_finite(values: Array) -> int:
    """Return the position of the first value that is NaN or infinite in single precision, or -1 if there is none."""
    for at in range(len(values)):
        if not np.isfinite(np.float32(values[at])):
            return at
    return -1


def rows_from_arrays(
    X: Any,
    y: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    *,
    unlabelled: bool = False,
    path: Path | None = None,
) -> CSRRows:
    """Check a matrix, labels and weights, and return them as rows.

    ``X`` is a SciPy sparse matrix or array, a dense array or a data frame. Errors name ``path`` if the arrays come from
    a file. The function does not copy a sorted CSR matrix or a C-contiguous array of float32 or float64.

    >>> rows = rows_from_arrays(np.array([[0.0, 2.0], [1.0, 0.0]]), [1, 0])
    >>> len(rows), rows.features, rows.layout, rows.labels
    (2, 2, 'dense', array([1., 0.]))
    """
    if hasattr(X, "tocsr"):
        if y is not None and len(X.shape) == 2:  # A matrix of a wrong shape could take any memory.
            label_column(y, int(X.shape[0]), unlabelled, path)
        indptr, indices, values = compressed_rows(X, path)
    else:
        X = _dense(X, path)
        indices, values = NO_INDICES, X.reshape(-1)
        indptr = np.arange(0, X.size + 1, X.shape[1], dtype=np.int64)
    return CSRRows(
        indptr,
        indices,
        values,
        label_column(y, len(indptr) - 1, unlabelled, path),
        weight_column(weights, len(indptr) - 1, path),
        int(X.shape[1]),
        "dense" if indices is NO_INDICES else "sparse",
    )


def _dense(X: object, path: Path | None) -> Array:
    array = _array(X, "data", path)
    require_matrix(array, path)
    dense = as_floats(array, path)
    at = int(first_not_finite(dense.reshape(-1)))
    if at >= 0:
        row, column = divmod(at, dense.shape[1])
        raise not_finite(dense[row, column], row, column, path)
    return dense


def _array(numbers: object, what: str, path: Path | None) -> Array:
    """Convert an array, a list, a column or a data frame to a NumPy array."""
    if isinstance(numbers, np.ma.MaskedArray) and np.ma.is_masked(numbers):
        raise DataError(f"some of the {what} are masked", path=path, remedy="Fill them, or leave their rows out.")
    try:
        return np.asarray(numbers.to_numpy() if hasattr(numbers, "to_numpy") else numbers)
    except (ValueError, TypeError) as error:
        raise DataError(f"the {what} cannot be made into an array ({error})", path=path, remedy=ENCODE) from None


def _column(numbers: ArrayLike, what: str, n_rows: int, path: Path | None) -> Array:
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


def label_column(y: ArrayLike | None, n_rows: int, unlabelled: bool, path: Path | None) -> Array:
    """Return checked labels as float64; rows without labels have the label 0 where that is allowed."""
    if y is not None:
        return _column(y, "labels", n_rows, path)
    if not unlabelled:
        raise DataError("there are no labels", path=path, remedy="Give one label per row, as y.")
    return np.zeros(n_rows)


def weight_column(weights: ArrayLike | None, n_rows: int, path: Path | None) -> Array:
    """Return checked weights as float32, or an empty array if there are none."""
    if weights is None:
        return NO_WEIGHTS
    column = _column(weights, "weights", n_rows, path)
    _refuse(column, column < 0, "the weight {} is negative", "Weights are 0 or more.", path)
    _refuse(column, column > np.finfo(np.float32).max, "the weight {} is too large", "Scale the weights down.", path)
    found = column.astype(np.float32)
    if not found.any():
        raise DataError("all weights are 0", path=path, remedy="Give at least one row a weight above 0.")
    return found


def _refuse(column: Array, bad: Array, what: str, remedy: str, path: Path | None) -> None:
    if bad.any():
        row = int(bad.argmax())
        raise DataError(f"{what.format(column[row])} (rows count from 0)", path=path, row=row, remedy=remedy)


_REBUILD = "Make the matrix again from its (row, column, value) triplets, with scipy.sparse.coo_array."
_BYTES_PER_ROW = 24  # Bytes that a row takes while a matrix is converted to CSR.
_WORTH_A_THREAD = 2**20  # entries, which take about a millisecond
_FINE, _DISORDERED, _BAD_START, _BAD_INDEX, _NOT_FINITE = range(5)


def compressed_rows(X: Any, path: Path | None = None) -> tuple[Array, Array, Array]:
    """Return (indptr, indices, values) of a sparse matrix.

    Within a row the indices rise, each index occurs once, and all values are finite.

    >>> import scipy.sparse as sp
    >>> compressed_rows(sp.csc_array([[0.0, 1.0, 2.0], [0.5, 0.0, 0.0]]))
    (array([0, 2, 3]), array([1, 2, 0], dtype=uint32), array([1. , 2. , 0.5]))
    """
    require_matrix(X, path)
    try:
        X = _native(X)
        _check_before_conversion(X, path)
        csr = X.tocsr()
        values = as_floats(csr.data, path)
        if _check(csr.indptr, csr.indices, values, csr.shape, path) == _DISORDERED:
            csr = type(csr)((values, csr.indices, csr.indptr), shape=csr.shape, copy=True)
            csr.sum_duplicates()
            values = as_floats(csr.data, path)
            _check(csr.indptr, csr.indices, values, csr.shape, path)  # Sums of duplicates may have overflowed.
    except DataError:
        raise
    except (ValueError, TypeError, IndexError, AttributeError, ArithmeticError, MemoryError) as error:
        raise _broken(str(error) or type(error).__name__, path) from None
    return np.ascontiguousarray(csr.indptr, np.int64), _unsigned(csr.indices), values


def require_structure(X: Any, path: Path | None = None, threads: int = 1) -> Any:
    """Return a sparse matrix; raise ``DataError`` if it has entries outside its shape or arrays that do not fit.

    SciPy's compiled code would read and write outside of arrays. Values are not looked at: this takes a fifth of a
    nanosecond for each entry, divided by the number of threads. Indices of another byte order are converted.

    >>> import scipy.sparse as sp
    >>> require_structure(sp.csr_array([[0.0, 1.0], [2.0, 0.0]])).nnz
    2
    """
    try:
        X = _native(X)
        _check_before_conversion(X, path)
        if X.format == "csr":
            _check_structure(X.indptr, X.indices, len(X.data), X.shape, path, threads)
        return X
    except DataError:
        raise
    except (ValueError, TypeError, IndexError, AttributeError, ArithmeticError) as error:
        raise _broken(str(error) or type(error).__name__, path) from None


def _native(X: Any) -> Any:
    """Return a sparse matrix whose indices are in the byte order of this machine, not copied unless they are swapped.

    Compiled code would take swapped bytes for other numbers.
    """
    names = [name for name in ("indptr", "indices", "row", "col") if hasattr(X, name)]
    swapped = {name: part for name in names if not (part := np.asarray(getattr(X, name))).dtype.isnative}
    if not swapped:
        return X
    found = copy(X)
    for name, part in swapped.items():
        setattr(found, name, part.astype(part.dtype.newbyteorder("=")))
    return found


def _check_structure(
    indptr: Array, indices: Array, entries: int, shape: tuple[int, int], path: Path | None, threads: int
) -> None:
    fits = len(indptr) == shape[0] + 1 and len(indices) == entries
    if fits and indptr.dtype.kind == indices.dtype.kind == "i" and _rows_follow(indptr, entries):
        stored, threads = indices[: indptr[-1]], min(threads, entries // WORTH_A_THREAD)
        inside = partial(_are_columns, shape[1])
        if inside(stored) if threads < 2 else all(in_parallel(inside, np.array_split(stored, threads), threads)):
            return
    # The slower check finds what is wrong.
    _check(indptr, indices, np.zeros(entries, np.float32), shape, path)


@compiled
def _rows_follow(indptr: Array, entries: int) -> bool:
    """Return whether rows start where others end, within the arrays."""
    sound = indptr[0] == 0
    for row in range(len(indptr) - 1):
        sound &= indptr[row] <= indptr[row + 1]
    return bool(sound and indptr[-1] <= entries)


@compiled
def _are_columns(features: int, indices: Array) -> bool:
    flaw = False
    for at in range(len(indices)):
        flaw |= (indices[at] < 0) | (indices[at] >= features)
    return not flaw


def _check_before_conversion(X: Any, path: Path | None) -> None:
    if X.format != "csr" and _BYTES_PER_ROW * X.shape[0] > available_bytes():
        raise DataError(
            f"a matrix of {X.shape[0]:,} rows does not fit into memory", path=path, remedy="Check its shape."
        )
    if X.format == "csc":
        _check(X.indptr, X.indices, np.zeros(len(X.data), np.float32), X.shape[::-1], path)
    elif X.format == "bsr":
        blocks = (X.shape[0] // X.blocksize[0], X.shape[1] // X.blocksize[1])
        _check(X.indptr, X.indices, np.zeros(len(X.data), np.float32), blocks, path)
    elif X.format == "lil":
        _check_lists(X, path)
    elif X.format == "dok":
        places = np.array(list(X.keys()), np.int64).reshape(-1, 2)
        if places.size and not ((places >= 0) & (places < X.shape)).all():
            raise _broken("it has coordinates outside its shape", path)
    elif X.format == "coo":
        for coordinates, size in zip((X.row, X.col), X.shape, strict=True):
            within = len(coordinates) == 0 or (coordinates.min() >= 0 and coordinates.max() < size)
            if len(coordinates) != len(X.data) or not within:
                raise _broken("it has coordinates outside its shape", path)


def _check_lists(X: Any, path: Path | None) -> None:
    """Raise ``DataError`` for a matrix of lists, one of columns and one of values for each row, that do not fit."""
    lengths = [len(row) for row in X.rows]
    if len(lengths) != X.shape[0] or lengths != [len(row) for row in X.data]:
        raise _broken("its lists of columns and of values do not fit", path)
    columns = np.fromiter(chain.from_iterable(X.rows), np.int64, sum(lengths))
    if columns.size and not 0 <= columns.min() <= columns.max() < X.shape[1]:
        raise _broken("it has columns outside its shape", path)


def _check(indptr: Array, indices: Array, values: Array, shape: tuple[int, int], path: Path | None) -> int:
    """Raise ``DataError`` if the structure is wrong; else return ``_FINE`` or ``_DISORDERED``.

    ``_DISORDERED`` means that the indices of a row do not rise, or that an index occurs twice.
    """
    if len(indptr) != shape[0] + 1 or len(indices) != len(values):
        raise _broken(f"{len(indptr)} row starts, {len(indices)} indices and {len(values)} values do not fit", path)
    starts = np.ascontiguousarray(indptr, np.int64)
    problem, row, at = _examine(starts, _unsigned(indices), values, shape[1])
    if problem == _BAD_START:
        raise _broken(f"row {row} starts at entry {starts[row]} and ends at {starts[row + 1]} of {len(values)}", path)
    if problem == _BAD_INDEX:
        what = f"index {indices[at]} is not within 0 and {shape[1] - 1} (rows count from 0)"
        raise DataError(what, path=path, row=row, column=int(indices[at]), remedy=_REBUILD)
    if problem == _NOT_FINITE:
        raise not_finite(values[at], row, int(indices[at]), path)
    return int(problem)


def _unsigned(indices: Array) -> Array:
    """Return the indices as unsigned numbers, so that a negative index becomes too large."""
    if indices.dtype.kind not in "iu":
        raise TypeError(f"its indices are of type {indices.dtype}")
    wide = np.int64 if indices.dtype.itemsize == 8 else np.int32
    return np.ascontiguousarray(indices, wide).view(np.uint64 if wide is np.int64 else np.uint32)


def _broken(why: str, path: Path | None) -> DataError:
    return DataError(f"the sparse matrix is damaged: {why}", path=path, remedy=_REBUILD)


def _examine(indptr: Array, indices: Array, values: Array, features: int) -> tuple[int, int, int]:
    """Return (the problem, its row, its entry); disorder counts only if nothing worse is found.

    Large matrices are examined on all cores.
    """
    # All offsets are checked first, because entries outside the arrays must not be read.
    row = int(_bad_start(indptr, len(values)))
    if row >= 0:
        return _BAD_START, row, 0
    rows = len(indptr) - 1
    threads = max(1, min(usable_cores(), len(values) // _WORTH_A_THREAD, rows))
    bounds = [rows * part // threads for part in range(threads + 1)]

    def examine(part: int) -> tuple[int, int, int]:
        found: tuple[int, int, int] = _examine_rows(
            indptr, indices, values, np.uint64(features), bounds[part], bounds[part + 1]
        )
        return found

    found = in_parallel(examine, range(threads))
    worse = [each for each in found if each[0] not in (_FINE, _DISORDERED)]
    return worse[0] if worse else max(found)


@compiled
def _bad_start(indptr: Array, entries: int) -> int:
    """Return the first row whose entries are not within the arrays; -1 if there is none."""
    if indptr[0] != 0:
        return 0
    for row in range(len(indptr) - 1):
        if not indptr[row] <= indptr[row + 1] <= entries:
            return row
    return -1


@compiled
def _examine_rows(
    indptr: Array, indices: Array, values: Array, features: np.uint64, first: int, last: int
) -> tuple[int, Any, Any]:
    """Return (the problem, its row, its entry) of the rows from ``first`` up to ``last``.

    Values must be finite in single precision, as those of dense matrices must.
    """
    problem, one = _FINE, np.uint64(1)
    for row in range(first, last):
        start, stop = np.uint64(indptr[row]), np.uint64(indptr[row + 1])
        # Without branches, vector instructions examine several entries at once. A value that is not finite is not 0
        # when it is multiplied by 0.
        flaw = False
        for at in range(start, stop):
            flaw |= (indices[at] >= features) | (np.float32(values[at]) * np.float32(0) != 0)
        for at in range(start + one, stop):
            flaw |= indices[at] <= indices[at - one]
        if not flaw:
            continue
        for at in range(start, stop):
            if indices[at] >= features:
                return _BAD_INDEX, row, np.int64(at)
            if not np.isfinite(np.float32(values[at])):
                return _NOT_FINITE, row, np.int64(at)
            if at > start and indices[at] <= indices[at - one]:
                problem = _DISORDERED
    return problem, 0, 0
