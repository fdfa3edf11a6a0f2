"""Averages of the iterates, which a run returns instead of its last parameters: uniform (Polyak) or exponential."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hogwild.jit import compiled
from hogwild.registry import invalid_parameter


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


@dataclass(frozen=True, slots=True)
class EMA:
    """Exponential moving average of the iterates, for ``minimise(average=EMA())``.

    Parameters
    ----------
    decay : float, default 0.999
        Weight of each iterate relative to the next one, between 0 and 1.

    Raises
    ------
    ParameterError
        If ``decay`` is not between 0 and 1.

    Examples
    --------
    >>> EMA(1.5)
    Traceback (most recent call last):
        ...
    hogwild.errors.ParameterError: The 'decay' parameter must be between 0 and 1. Got 1.5 instead.
    """

    decay: float = 0.999

    def __post_init__(self) -> None:
        if not 0 < self.decay < 1:
            raise invalid_parameter("decay", "between 0 and 1", self.decay)
