"""Checks of arrays before they become rows: the shape, the element type and finite values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.errors import DataError
from hogwild.jit import compiled

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
def first_not_finite(values: Any) -> int:
    """Return the position of the first value that is NaN or infinite in single precision, or -1 if there is none."""
    for at in range(len(values)):
        if not np.isfinite(np.float32(values[at])):
            return at
    return -1
