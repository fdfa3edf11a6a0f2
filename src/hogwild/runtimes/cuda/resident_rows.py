"""Rows of problems that stay in the memory of a GPU between runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from hogwild.kernels.cuda_device import CopiedArrays
from hogwild.problems.problem import RowProblem
from hogwild.rules.rule import Rule


@dataclass(frozen=True, slots=True, eq=False)
class Resident:
    """What stays of a problem's runs: its rows on the GPU, and the rules with which its kernels were compiled."""

    rows: CopiedArrays = field(default_factory=CopiedArrays)
    compiled: set[Rule] = field(default_factory=set)


_RESIDENT: WeakKeyDictionary[RowProblem, Resident] = WeakKeyDictionary()


def resident(problem: RowProblem) -> Resident:
    """Return what stays of a problem as long as it is in use."""
    return _RESIDENT.setdefault(problem, Resident())


def release_rows() -> None:
    """Release the rows of all problems."""
    _RESIDENT.clear()
