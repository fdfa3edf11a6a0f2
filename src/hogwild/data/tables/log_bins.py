"""Bins of logarithmic width: small whole numbers have bins of their own, and a doubling of large ones has four bins."""

from __future__ import annotations

import math

import numpy as np

from hogwild.data.csr import Array
from hogwild.jit import compiled, compiled_part


@compiled_part
def log_bin(number: float) -> int:
    """Return the bin of a number: 4 times the logarithm to base 2 of 1 + |x|, rounded, with the sign of x."""
    bin = math.floor(4.0 * math.log2(1.0 + abs(number)) + 0.5)
    return -bin if number < 0 else bin


@compiled
def _fill(numbers: Array, out: Array) -> None:
    for at in range(numbers.size):
        out[at] = log_bin(numbers[at])


def log_bins(numbers: Array) -> Array:
    """Return the bins of numbers, computed by the compiled function that also the parser of text uses.

    >>> log_bins(np.array([0.0, 1.0, 2.0, 3.0, 1e6, -1.0]))
    array([ 0,  4,  6,  8, 80, -4])
    """
    out = np.empty(len(numbers), np.int64)
    _fill(numbers, out)
    return out
