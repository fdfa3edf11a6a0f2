"""The score of a row: the sum of its values times the weights of their columns."""

from __future__ import annotations

from typing import Any

import numpy as np

# mypy: disable-error-code="name-defined"
# ruff: noqa: F821


def dot_in_order(state: Any, indices: Any, values: Any, start: Any, stop: Any) -> Any:
    """One sum, in double precision, from the first entry to the last."""
    z = 0.0
    for j in range(start, stop):
        z += float(state[column(indices, j, start), 0] * value(values, j))
    return z


def dot(state: Any, indices: Any, values: Any, start: Any, stop: Any) -> Any:
    """Four sums in flight: a single one would wait for itself."""
    z0 = z1 = z2 = z3 = state[0, 0] * np.float32(0)  # zero, in the precision of the weights
    j = start
    while j + 4 <= stop:
        z0 += state[column(indices, j, start), 0] * value(values, j)
        z1 += state[column(indices, j + 1, start), 0] * value(values, j + 1)
        z2 += state[column(indices, j + 2, start), 0] * value(values, j + 2)
        z3 += state[column(indices, j + 3, start), 0] * value(values, j + 3)
        j += 4
    while j < stop:
        z0 += state[column(indices, j, start), 0] * value(values, j)
        j += 1
    return (z0 + z1) + (z2 + z3)
