"""Scales of axes: linear, logarithmic, or categories."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

Scale = Literal["linear", "log", "category"]

_NEARLY = 1e-6  # maximum relative difference of gaps that count as equal


def line_scale(values: Iterable[Any], log: bool = False) -> Scale:
    """Return the scale for points and curves. Values without a positive number cannot have a logarithmic scale.

    >>> line_scale([1, 2.5, None]), line_scale([1, 10], log=True), line_scale([0], log=True)
    ('linear', 'log', 'linear')
    >>> line_scale(["sgd", "adam"])
    'category'
    """
    known = [value for value in values if value is not None]
    if not all(map(is_number, known)):
        return "category"
    return "log" if log and any(value > 0 for value in known) else "linear"


def cell_scale(values: Sequence[Any], log: bool = False) -> Scale:
    """Return the scale for bars and cells, which have a width. Numbers with unequal gaps become categories.

    >>> cell_scale([0, 5, 10]), cell_scale([1, 2, 7]), cell_scale([1, 2, 4], log=True)
    ('linear', 'category', 'log')
    """
    scale = line_scale(values, log)
    if scale != "linear":
        return scale
    known = sorted({value for value in values if value is not None})
    return "linear" if _equal([later - earlier for earlier, later in _pairs(known)]) else "category"


def grows_by_a_factor(values: Sequence[Any]) -> bool:
    """Return whether each number is the same multiple of the one before, as in 1, 2, 4, 8.

    >>> grows_by_a_factor([1, 2, 4, 8]), grows_by_a_factor([1, 2, 3, 4]), grows_by_a_factor(["a", "b", "c"])
    (True, False, False)
    """
    if len(values) < 3 or not all(is_number(value) and value > 0 for value in values):
        return False
    return _equal([math.log(later / earlier) for earlier, later in _pairs(values)])


def few_ticks(values: Iterable[Any]) -> list[float] | None:
    """Return the values as ticks of a logarithmic axis if they are 2 to 10 and far enough apart, else None.

    >>> few_ticks([1, 2, 4, 8, 4, 2]), few_ticks(range(1, 100))
    ([1, 2, 4, 8], None)
    """
    known = sorted({value for value in values if is_number(value) and value > 0})
    far_apart = all(later / earlier > 1.5 for earlier, later in _pairs(known))
    return known if 2 <= len(known) <= 10 and far_apart else None


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number; True and False are not numbers here."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _pairs(values: Sequence[Any]) -> list[tuple[Any, Any]]:
    return list(itertools.pairwise(values))


def _equal(gaps: Sequence[float]) -> bool:
    return not gaps or max(gaps) - min(gaps) <= _NEARLY * max(map(abs, gaps))
