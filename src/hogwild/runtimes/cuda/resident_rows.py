"""Rows that stay in the memory of a GPU between runs, so that the next run on the same problem copies nothing."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from hogwild.kernels.cuda_device import CopiedArrays
from hogwild.problems.problem import RowProblem

_ROWS: WeakKeyDictionary[RowProblem, CopiedArrays] = WeakKeyDictionary()


def resident(problem: RowProblem) -> CopiedArrays:
    """Return the arrays of a problem on the GPU, where they stay as long as the problem is in use."""
    return _ROWS.setdefault(problem, CopiedArrays())


def release_rows() -> None:
    """Release the rows of all problems."""
    _ROWS.clear()
