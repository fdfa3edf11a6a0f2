"""Order in which scikit-learn's SGD visits rows, so that equal ``random_state`` gives an equal fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from hogwild.data.csr import Array
from hogwild.data.extents import number_type
from hogwild.jit import compiled

LARGEST_SEED = np.iinfo(np.int32).max
_NOT_ZERO = np.uint32(1)  # replacement for the seed 0: a xorshift generator never leaves the state 0


class Reshuffled:
    """Order of rows of ``SequentialDataset.shuffle``: each epoch shuffles the order of the epoch before, with one seed.

    ``rows`` counts all rows. Rows that early stopping holds out also take part in the shuffle, as in scikit-learn.

    >>> order = Reshuffled(5)
    >>> [order(np.arange(5), 7, epoch).tolist() for epoch in (0, 1, 0)]
    [[3, 4, 1, 2, 0], [2, 0, 4, 1, 3], [3, 4, 1, 2, 0]]
    """

    def __init__(self, rows: int) -> None:
        self._rows, self._seed, self._epochs = rows, -1, 0
        self._order = np.empty(0, number_type(rows))

    def __call__(self, ids: Array, seed: int, number: int) -> Array:
        if seed != self._seed or number + 1 < self._epochs:
            self._seed, self._epochs, self._order = seed, 0, np.arange(self._rows, dtype=number_type(self._rows))
        while self._epochs < number + 1:
            _shuffle(self._order, np.uint32(seed))
            self._epochs += 1
        if len(ids) == self._rows:
            return self._order.copy()
        among = np.zeros(self._rows, bool)
        among[ids] = True
        return self._order[among[self._order]]


@compiled
def _shuffle(order: Any, seed: Any) -> None:
    """Shuffle in place by Fisher and Yates, with the 32-bit xorshift generator of Marsaglia (2003)."""
    state = np.uint32(seed) if seed != 0 else _NOT_ZERO
    for at in range(order.size - 1):
        state ^= np.uint32(state << np.uint32(13))
        state ^= np.uint32(state >> np.uint32(17))
        state ^= np.uint32(state << np.uint32(5))
        chosen = at + (state & np.uint32(0x7FFFFFFF)) % (order.size - at)
        order[at], order[chosen] = order[chosen], order[at]


def class_seeds(random_state: Any, classes: int) -> tuple[int, ...]:
    """Return the seeds with which scikit-learn shuffles for each class, or one seed for two classes.

    >>> class_seeds(np.random.RandomState(0), 2), class_seeds(np.random.RandomState(0), 3)
    ((...,), (..., ..., ...))
    """
    if classes <= 2:
        return (_second_draw(random_state),)
    seeds = random_state.randint(LARGEST_SEED, size=classes)
    return tuple(_second_draw(np.random.RandomState(seed)) for seed in seeds)


def _second_draw(random_state: Any) -> int:
    random_state.randint(1, LARGEST_SEED)  # scikit-learn's data set draws this number, which is unused here
    return int(random_state.randint(LARGEST_SEED))
