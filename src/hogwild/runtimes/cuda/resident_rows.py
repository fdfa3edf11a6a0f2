"""Rows of problems that stay in the memory of a GPU between runs."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from hogwild.kernels.cuda_device import CopiedArrays
from hogwild.problems.problem import RowProblem

_ROWS: WeakKeyDictionary[RowProblem, CopiedArrays] = WeakKeyDictionary()


def rows_of(problem: RowProblem) -> CopiedArrays:
    """Return the rows of a problem on the GPU, where they stay as long as the problem is in use."""
    return _ROWS.setdefault(problem, CopiedArrays())


def release_rows() -> None:
    """Release the rows of all problems."""
    _ROWS.clear()
