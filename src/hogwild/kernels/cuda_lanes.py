"""Sums and values of the lanes that share a row: by shuffles of a warp, or of one lane alone."""

# mypy: disable-error-code="name-defined, attr-defined, no-untyped-call"
# ruff: noqa: F821

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from hogwild.jit import Function, bind
from hogwild.kernels.cuda_jit import cuda


def shuffled_sum(z: Any) -> Any:
    """Return the sum over the lanes of a group, in each of them."""
    offset = LANES // 2
    while offset > 0:
        z += cuda.shfl_xor_sync(0xFFFFFFFF, z, offset)
        offset //= 2
    return z


def own_sum(z: Any) -> Any:
    """Return the number itself, for groups of one lane."""
    return z


@functools.cache
def lane_sum(lanes: int) -> Function:
    """Return the function that adds up a number over the lanes of a group."""
    return own_sum if lanes == 1 else bind(shuffled_sum, LANES=lanes)


def shuffled_value(value: Any, source: Any) -> Any:
    """Return the value of lane ``source`` of the group."""
    return cuda.shfl_sync(0xFFFFFFFF, value, np.int32(cuda.laneid // LANES * LANES + source))


def own_value(value: Any, source: Any) -> Any:
    """Return the value itself, for groups of one lane."""
    return value


@functools.cache
def lane_value(lanes: int) -> Function:
    """Return the function that gives all lanes of a group the value of one of them."""
    return own_value if lanes == 1 else bind(shuffled_value, LANES=lanes)
