"""Merging of duplicate entries. Hashed rows have entries in any order, and several may share a column."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.jit import compiled


@compiled
def merge_duplicates(indptr: Any, indices: Any, values: Any) -> None:
    """Sort the entries of each row by index and add up the values of equal indices, in place.

    The function rewrites ``indptr``. Entries after ``indptr[-1]`` have no meaning any more. Sums are in double
    precision, so that they hardly depend on the order of equal indices.

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
    """Sort the entries of a row by index, in place, with Shell's sort.

    A sorted row takes one pass, and a long row never takes quadratic time.
    """
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
