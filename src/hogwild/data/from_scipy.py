"""Conversion of SciPy sparse matrices to checked compressed rows, without a copy where none is needed.

SciPy checks few properties of a matrix when the caller makes it, and none later. Its compiled code trusts its input.
This module therefore checks the structure before it asks SciPy to convert, sort or sum anything.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hogwild.data.array_validation import as_floats, not_finite, require_matrix
from hogwild.data.csr import Array
from hogwild.errors import DataError
from hogwild.jit import compiled

_REBUILD = "Make the matrix again from its (row, column, value) triplets, with scipy.sparse.coo_array."
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


def _check_before_conversion(X: Any, path: Path | None) -> None:
    if X.format == "csc":
        _check(X.indptr, X.indices, np.zeros(len(X.data), np.float32), X.shape[::-1], path)
    elif X.format == "bsr":
        blocks = (X.shape[0] // X.blocksize[0], X.shape[1] // X.blocksize[1])
        _check(X.indptr, X.indices, np.zeros(len(X.data), np.float32), blocks, path)
    elif X.format == "coo":
        for coordinates, size in zip((X.row, X.col), X.shape, strict=True):
            within = len(coordinates) == 0 or (coordinates.min() >= 0 and coordinates.max() < size)
            if len(coordinates) != len(X.data) or not within:
                raise _broken("it has coordinates outside its shape", path)


def _check(indptr: Array, indices: Array, values: Array, shape: tuple[int, int], path: Path | None) -> int:
    """Raise ``DataError`` if the structure is wrong; else return ``_FINE`` or ``_DISORDERED``.

    ``_DISORDERED`` means that the indices of a row do not rise, or that an index occurs twice.
    """
    if len(indptr) != shape[0] + 1 or len(indices) != len(values):
        raise _broken(f"{len(indptr)} row starts, {len(indices)} indices and {len(values)} values do not fit", path)
    starts = np.ascontiguousarray(indptr, np.int64)
    problem, row, at = _examine(starts, _unsigned(indices), values, np.uint64(shape[1]))
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


@compiled
def _examine(indptr: Any, indices: Any, values: Any, features: Any) -> tuple[int, Any, Any]:
    """Return (the problem, its row, its entry); disorder counts only if nothing worse is found."""
    entries = len(values)
    if indptr[0] != 0:
        return _BAD_START, 0, 0
    # This loop checks all offsets first, because the next loop must not read entries outside the arrays.
    for row in range(len(indptr) - 1):
        if not indptr[row] <= indptr[row + 1] <= entries:
            return _BAD_START, row, 0
    problem = _FINE
    for row in range(len(indptr) - 1):
        start, stop = np.uint64(indptr[row]), np.uint64(indptr[row + 1])
        for at in range(start, stop):
            if indices[at] >= features:
                return _BAD_INDEX, row, np.int64(at)
            if not np.isfinite(values[at]):
                return _NOT_FINITE, row, np.int64(at)
            if at > start and indices[at] <= indices[at - np.uint64(1)]:
                problem = _DISORDERED
    return problem, 0, 0
