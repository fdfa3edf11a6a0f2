"""Weighted sums of squares on a GPU: penalties, without a copy of the parameters to the host."""

# mypy: disable-error-code="attr-defined, no-untyped-call"

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.kernels import cuda_jit
from hogwild.kernels.cuda_device import device_array, whole_device
from hogwild.kernels.cuda_jit import cuda

THREADS = 64  # of a block; each has sums of its own


def weighted_squares(numbers: Any, groups: int, each: int, apart: tuple[int, int], weights: Any) -> float:
    """Return the sum over groups of a group's weight times its squared numbers; not a number if one is not finite.

    Number f of group u is at place ``u * apart[0] + f * apart[1]`` of the flat array ``numbers`` in the GPU's memory.
    If there is one weight, all groups have it.
    """
    blocks = whole_device()[0]
    sums = device_array((2, blocks * THREADS), np.float64)
    cuda_jit.kernel(add_squares)[blocks, THREADS](numbers, groups, each, *apart, weights, sums)
    weighted, plain = sums.copy_to_host().sum(axis=1)
    return float(weighted + 0 * plain)  # Numbers of a group without weight count, too.


def add_squares(
    numbers: Any, groups: Any, each: Any, between_groups: Any, between_numbers: Any, weights: Any, sums: Any
) -> None:
    """Write the weighted and the plain sums of squares, one of each for a thread."""
    weighted, plain = 0.0, 0.0
    for at in range(cuda.grid(1), groups * each, cuda.gridsize(1)):
        u, f = at // each, at % each
        number = float(numbers[u * between_groups + f * between_numbers])
        weighted += float(weights[u if len(weights) > 1 else 0]) * number * number
        plain += number * number
    sums[0, cuda.grid(1)], sums[1, cuda.grid(1)] = weighted, plain
