"""Access to a row's columns and values, by a pair of functions per layout of :class:`hogwild.data.csr.CSRRows`."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.jit import Function


def span(indptr: Any, i: Any) -> Any:
    """Return the first and the last position (exclusive) of the entries of row ``i``, unsigned.

    With signed positions, the kernel would check every index for a count from the end of the array. Such a check takes
    about as long as the multiplication that follows.
    """
    return np.uint64(indptr[i]), np.uint64(indptr[i + 1])


def stored_column(indices: Any, j: Any, start: Any) -> Any:
    """Return the column of entry ``j``, which ``indices`` stores."""
    return indices[j]


def counted_column(indices: Any, j: Any, start: Any) -> Any:
    """Return the column of entry ``j`` of a dense row that begins at ``start``."""
    return np.uint64(j - start)


def stored_value(values: Any, j: Any) -> Any:
    """Return the value of entry ``j`` in single precision."""
    return np.float32(values[j])


def precise_value(values: Any, j: Any) -> Any:
    """Return the value of entry ``j`` in the precision in which it is stored."""
    return values[j]


def one(values: Any, j: Any) -> Any:
    """Return 1, the value of every entry of binary data."""
    return np.float32(1)


LAYOUTS: dict[str, dict[str, Function]] = {
    "sparse": {"column": stored_column, "value": stored_value},
    "binary": {"column": stored_column, "value": one},
    "dense": {"column": counted_column, "value": stored_value},
}
PRECISE: dict[str, dict[str, Function]] = {
    "sparse": {"column": stored_column, "value": precise_value},
    "binary": {"column": stored_column, "value": one},
    "dense": {"column": counted_column, "value": precise_value},
}
