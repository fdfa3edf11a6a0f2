"""Running mean of the iterates (Polyak and Juditsky 1992)."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.jit import compiled


@compiled
def _move_towards(mean: NDArray[Any], state: NDArray[Any], share: float) -> None:
    for p in range(mean.shape[0]):
        mean[p, 0] += share * (state[p, 0] - mean[p, 0])


@dataclass(eq=False)
class IterateAverage:
    """Mean of the parameters at the end of each chunk since averaging began.

    >>> mean = IterateAverage((np.zeros((1, 1), np.float32),))
    >>> for value in (1.0, 3.0):
    ...     mean.add((np.array([[value]], np.float32),))
    >>> mean.values[0]
    array([[2.]], dtype=float32)
    """

    values: tuple[np.ndarray, ...]
    count: int = 0
    _lock: Any = field(default_factory=threading.Lock, repr=False)

    def add(self, state: tuple[np.ndarray, ...]) -> None:
        """Add the present parameters, the first column of each array of ``state``, to the mean."""
        with self._lock:
            self.count += 1
            for mean, part in zip(self.values, state, strict=True):
                _move_towards(mean, part, mean.dtype.type(1 / self.count))
