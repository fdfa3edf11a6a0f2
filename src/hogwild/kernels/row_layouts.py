"""How a row's columns and values are read: one pair of functions per layout of :class:`hogwild.data.csr.CSRRows`."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.jit import Function


def span(indptr: Any, i: Any) -> Any:
    """Where the entries of row ``i`` begin and end; unsigned, or every index would be asked if it counts from the end.

    For that question takes about as long as the multiplication that follows.
    """
    return np.uint64(indptr[i]), np.uint64(indptr[i + 1])


def stored_column(indices: Any, j: Any, start: Any) -> Any:
    """The column of entry ``j``, as it stands in ``indices``."""
    return indices[j]


def counted_column(indices: Any, j: Any, start: Any) -> Any:
    """The column of entry ``j`` of a dense row that begins at ``start``."""
    return np.uint64(j - start)


def stored_value(values: Any, j: Any) -> Any:
    """The value of entry ``j``."""
    return np.float32(values[j])


def precise_value(values: Any, j: Any) -> Any:
    """The value of entry ``j`` with all its digits."""
    return values[j]


def one(values: Any, j: Any) -> Any:
    """The value of every entry of binary data."""
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
