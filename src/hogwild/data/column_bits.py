"""A set of columns as bits, and the numbers of its columns, in compiled code.

The bits of millions of columns fit into a core's cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.jit import compiled, compiled_part


@compiled_part
def _ones(word: Any) -> Any:
    """Return the number of ones in 64 bits."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@compiled
def mark(indices: Any, bits: Any) -> None:
    """Set the bits of columns."""
    for i in range(indices.size):
        column = np.uint64(indices[i])
        bits[column >> np.uint64(6)] |= np.uint64(1) << (column & np.uint64(63))


@compiled
def counts(bits: Any) -> Any:
    """Return the number of columns before each word, and of all after the last."""
    before = np.empty(bits.size + 1, np.uint32)
    total = np.uint64(0)
    for word in range(bits.size):
        before[word] = total
        total += _ones(bits[word])
    before[bits.size] = total
    return before


@compiled
def fill(bits: Any, columns: Any) -> None:
    """Write the columns whose bits are set, in order."""
    at = 0
    for word in range(bits.size):
        left = bits[word]
        while left:
            below = left - np.uint64(1)  # ones where the word ends in zeros
            columns[at] = np.uint64(word) * np.uint64(64) + _ones(~left & below)
            left &= below
            at += 1


@compiled
def renumber(indices: Any, bits: Any, before: Any, numbers: Any) -> Any:
    """Write the number of each column, the largest number for a column that is not there; return how many are not."""
    unknown = 0
    for i in range(indices.size):
        column = np.uint64(indices[i])
        place, bit = column >> np.uint64(6), column & np.uint64(63)
        word = bits[place] if place < bits.size else np.uint64(0)
        if (word >> bit) & np.uint64(1):
            numbers[i] = before[place] + _ones(word & ((np.uint64(1) << bit) - np.uint64(1)))
        else:
            numbers[i] = np.uint32(0xFFFFFFFF)
            unknown += 1
    return unknown


@compiled
def number_present(indices: Any, features: Any, numbers: Any) -> Any:
    """Number the columns that are present, in their order; write the number of each entry, and return the columns."""
    bits = np.zeros(features // 64 + 1, np.uint64)
    mark(indices, bits)
    before = counts(bits)
    columns = np.empty(before[bits.size], np.int64)
    fill(bits, columns)
    renumber(indices, bits, before, numbers)
    return columns
