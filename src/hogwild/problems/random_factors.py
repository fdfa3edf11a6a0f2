"""Memory of factors, and their values at the start of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.slices import in_slices

LINE = 64  # bytes of a cache line
DRAWN_NUMBERS = 2**20  # random numbers of a generator


def aligned_table(rows: int, initial: Any) -> Array:
    """Return a table whose rows all are ``initial``; it begins at a cache line, and its columns are contiguous.

    >>> aligned_table(2, np.array([0.0, 1.0], np.float32))
    array([[0., 1.],
           [0., 1.]], dtype=float32)
    """
    columns = len(initial)
    memory = np.empty(rows * columns + LINE // 4, np.float32)
    first = -memory.ctypes.data % LINE // 4
    table: Array = memory[first : first + rows * columns].reshape((rows, columns), order="F")
    in_slices(rows, lambda part: np.copyto(table[part], initial))
    return table


def random_factors(seeds: Sequence[int], rows: int, rank: int) -> Array:
    """Return normal random numbers, which depend on the seeds and on the place alone; further rows change no others.

    >>> few, more = random_factors([0], 2, 3), random_factors([0], 5, 3)
    >>> bool((few == more[:2]).all())
    True
    """
    drawn, each = np.empty((rows, rank), np.float32), max(1, DRAWN_NUMBERS // max(1, rank))

    def draw(part: slice) -> None:
        block = part.start // each
        random = np.random.default_rng([*seeds, block] if block else [*seeds])
        random.standard_normal(out=drawn[part], dtype=np.float32)

    in_slices(rows, draw, each)
    return drawn
