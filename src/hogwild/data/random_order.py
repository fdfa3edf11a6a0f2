"""Random order of rows as a formula: the k-th number is computed from k, by a processor or by a GPU.

Multiplication by an odd number, addition and a shifted exclusive or are each a permutation of the numbers below a
power of two. Numbers that are no row are mapped again, until one is (cycle walking: Black and Rogaway 2002).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from hogwild.data.csr import Array
from hogwild.jit import compiled
from hogwild.lazy import cached_property

ROUNDS = 4
LEAST_BITS = 8  # With fewer, some orders are more likely than others.
ROWS, MASK, SHIFT, KEYS = 0, 1, 2, 3  # places in the array of constants
CONSTANTS = KEYS + 2 * ROUNDS
MOST_ROWS = 2**32
_RANDOM = 4  # last number of the seeds


@dataclass(frozen=True, eq=False)
class RandomOrder:
    """Row numbers from 0 up to ``rows`` in random order.

    >>> order = RandomOrder(1000, seed=0, number=0)
    >>> len(order), sorted(order[:].tolist()) == list(range(1000)), order[5] == int(order[3:8][2])
    (1000, True, True)
    """

    rows: int
    seed: int
    number: int  # number of the epoch

    def __len__(self) -> int:
        return self.rows

    @overload
    def __getitem__(self, which: slice) -> Array: ...

    @overload
    def __getitem__(self, which: int) -> int: ...

    def __getitem__(self, which: Any) -> Any:
        """Return one row number, or the numbers of a range."""
        numbers = range(self.rows)[which]
        if isinstance(numbers, int):
            return int(self[numbers : numbers + 1][0])
        order = np.empty(len(numbers), np.uint32)
        _fill(order, numbers.start, self.constants)
        return order

    @cached_property
    def constants(self) -> Array:
        """The number of rows, the mask and the shift of the permutation, and a factor and an addend of each round."""
        bits = max(LEAST_BITS, (self.rows - 1).bit_length())
        keys = np.random.default_rng([self.seed, self.number, _RANDOM]).integers(0, 2**32, 2 * ROUNDS, np.uint64)
        keys[::2] |= np.uint64(1)
        return np.concatenate([np.array([self.rows, 2**bits - 1, (bits + 1) // 2], np.uint64), keys])


def permuted_number(k: Any, constants: Any) -> Any:
    """Return the k-th row number."""
    x = np.uint64(k)
    inside = False
    while not inside:
        for place in range(KEYS, CONSTANTS, 2):
            x = (x * constants[place] + constants[place + 1]) & constants[MASK]
            x ^= x >> constants[SHIFT]
        inside = x < constants[ROWS]
    return x


_permuted_number = compiled(permuted_number)


@compiled
def _fill(order: Array, first: int, constants: Array) -> None:
    for k in range(len(order)):
        order[k] = _permuted_number(first + k, constants)
