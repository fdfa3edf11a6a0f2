"""Entries of hashed rows arrive in any order, and several may share a column: sort them and add them up."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.jit import compiled


@compiled
def merge_duplicates(indptr: Any, indices: Any, values: Any) -> None:
    """Within each row sort the entries by index and add up those of one index, in place.

    ``indptr`` is rewritten; entries behind ``indptr[-1]`` are left over. Sums are in double precision, so that they
    hardly depend on the order in which equal indices come.

    >>> indptr, indices = np.array([0, 3, 4]), np.array([7, 2, 7, 1], np.uint32)
    >>> values = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    >>> merge_duplicates(indptr, indices, values)
    >>> indptr, indices[:3], values[:3]
    (array([0, 2, 3]), array([2, 7, 1], dtype=uint32), array([2., 4., 4.], dtype=float32))
    """
    out, start = np.uint64(indptr[0]), np.uint64(indptr[0])
    for row in range(indptr.size - 1):
        stop = np.uint64(indptr[row + 1])
        _sort(indices, values, start, stop)
        at = start
        while at < stop:
            index, total = indices[at], 0.0
            while at < stop and indices[at] == index:
                total += values[at]
                at += np.uint64(1)
            indices[out], values[out] = index, total
            out += np.uint64(1)
        indptr[row + 1], start = out, stop


@compiled
def _sort(indices: Any, values: Any, start: Any, stop: Any) -> None:
    """Shell's sort: in place, one pass over what is sorted already, and never quadratic in a long row."""
    one, gap = np.uint64(1), np.uint64(1)
    at = start + one
    while at < stop and indices[at - one] <= indices[at]:
        at += one
    if at >= stop:
        return
    while gap < (stop - start) // np.uint64(4):
        gap = gap * np.uint64(3) + one
    while gap > np.uint64(0):
        for at in range(start + gap, stop):
            index, value, to = indices[at], values[at], np.uint64(at)
            while to >= start + gap and indices[to - gap] > index:
                indices[to], values[to] = indices[to - gap], values[to - gap]
                to -= gap
            indices[to], values[to] = index, value
        gap //= np.uint64(3)
