"""The smallest and the largest number of a long array, found on several threads."""

from __future__ import annotations

import numpy as np

from hogwild.data.csr import Array
from hogwild.parallel import in_parallel

WORTH_A_THREAD = 2**21  # numbers, about half a millisecond


def min_max(array: Array, threads: int) -> tuple[float, float]:
    """Return the smallest and the largest number; both are NaN if any number is.

    >>> min_max(np.arange(10.0), threads=2), min_max(np.array([1.0, np.nan]), threads=1)
    ((0.0, 9.0), (nan, nan))
    """
    threads = max(1, min(threads, array.size // WORTH_A_THREAD))
    found = in_parallel(_min_max, np.array_split(array, threads), threads)
    return float(np.min([low for low, _ in found])), float(np.max([high for _, high in found]))


def _min_max(array: Array) -> tuple[float, float]:
    return array.min(), array.max()
