"""Work along large arrays, in slices on all cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from hogwild.parallel import in_parallel

T = TypeVar("T")

ENTRIES = 2**18  # entries of a slice, which take longer than waking a thread


def in_slices(length: int, work: Callable[[slice], T], entries: int = ENTRIES) -> list[T]:
    """Call ``work`` for slices of an array of this length, at the same time on all cores, and return its results.

    The slices do not depend on the number of cores. ``work`` has to leave the interpreter to others while it is busy,
    as NumPy and compiled functions do.

    >>> in_slices(5, lambda part: (part.start, part.stop)), in_slices(5, lambda part: part.stop, entries=2)
    ([(0, 5)], [2, 4, 5])
    """
    slices = [slice(first, min(first + entries, length)) for first in range(0, length, entries)]
    return in_parallel(work, slices)


def copied(source: Any) -> Any:
    """Return a copy of an array, made on all cores if it is large.

    >>> copied(np.arange(3.0))
    array([0., 1., 2.])
    """
    to = np.empty_like(source)
    copy_array(to, source)
    return to


def copy_array(to: Any, source: Any) -> None:
    """Copy an array of the same shape, on all cores if it is large.

    >>> to = np.zeros(3)
    >>> copy_array(to, np.arange(3.0)); to
    array([0., 1., 2.])
    """
    if to.size <= ENTRIES:
        np.copyto(to, source)
        return
    width = to.size // max(1, len(to))
    in_slices(len(to), lambda part: np.copyto(to[part], source[part]), max(1, ENTRIES // max(1, width)))
