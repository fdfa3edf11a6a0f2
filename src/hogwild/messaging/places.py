"""Sets of places as bits: places are marked in any order, and found in ascending order.

``marks`` has a bit per place, and ``blocks`` a byte per 4,096 places, so that empty parts are skipped.
"""

# mypy: disable-error-code="call-arg, unreachable"

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from hogwild.jit import compiled


class Places:
    """Set of places below ``size``.

    >>> places = Places(10_000)
    >>> places.mark(np.array([9_000, 3, 9_000], np.uint32))
    >>> places.take(), len(places.take())
    (array([   3, 9000], dtype=uint32), 0)
    """

    def __init__(self, size: int) -> None:
        self._marks, self._blocks = np.zeros(-(-size // 64), np.uint64), np.zeros(-(-size // 4096), np.uint8)

    def mark(self, places: Any) -> None:
        """Add places."""
        _mark(places, self._marks, self._blocks)

    def mark_rows(self, indptr: Any, indices: Any, order: Any) -> None:
        """Add the features of some rows."""
        _mark_rows(indptr, indices, order, self._marks, self._blocks)

    def take(self) -> Any:
        """Return the places in ascending order, and remove all."""
        return _marked(self._marks, self._blocks)


@intrinsic
def _trailing_zeros(typingctx: Any, word: Any) -> Any:
    """Return the number of zero bits below the lowest one of a word that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@compiled
def _mark(places: Any, marks: Any, blocks: Any) -> None:
    """Mark places."""
    one = np.uint64(1)
    for place in places:
        u = np.uint64(place)
        marks[u >> np.uint64(6)] |= one << (u & np.uint64(63))
        blocks[u >> np.uint64(12)] = 1


@compiled
def _mark_rows(indptr: Any, indices: Any, order: Any, marks: Any, blocks: Any) -> None:
    """Mark the features of some rows."""
    one = np.uint64(1)
    for row in order:
        for at in range(np.uint64(indptr[row]), np.uint64(indptr[np.int64(row) + 1])):
            u = np.uint64(indices[at])
            marks[u >> np.uint64(6)] |= one << (u & np.uint64(63))
            blocks[u >> np.uint64(12)] = 1


@compiled
def _marked(marks: Any, blocks: Any) -> Any:
    """Return the marked places in ascending order, and clear all marks."""
    one, count = np.uint64(1), 0
    found = np.empty(np.count_nonzero(blocks) * 4096, np.uint32)
    for block in range(blocks.size):
        if blocks[block]:
            blocks[block] = 0
            for word in range(64 * block, min(64 * block + 64, marks.size)):
                left = marks[word]
                marks[word] = 0
                while left:
                    found[count] = 64 * word + np.int64(_trailing_zeros(left))
                    count += 1
                    left &= left - one
    return found[:count].copy()
