"""Weights of the changes that workers make to the parameters between two exchanges.

Workers that exchange rarely all move the frequent coordinates towards the same optimum. The sum of their changes would
overshoot it, and their mean is right. A rare coordinate is changed by one worker alone, and its change has to count in
full. So a change is divided by the expected number of workers that change the same coordinate between two exchanges.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hogwild.messaging.deltas import Floats, frozen
from hogwild.problems.problem import RowProblem, State
from hogwild.training.row_trainer import pack_state


def change_weights(problem: RowProblem, state: State, workers: int, interval: int, averages: bool) -> Floats | None:
    """Return the weight of each value's change, in the order of ``pack_state``; None where all count alike.

    ``averages`` tells whether the strategy takes the mean of the changes, which divides each by the number of workers
    already.
    """
    rates = problem.touch_rates()
    if rates is None or workers == 1:
        return None
    beside = tuple(np.repeat(_weights(rate, workers, interval), len(part) // len(rate))
                   for rate, part in zip(rates, state, strict=True))  # fmt: skip
    weights = pack_state(
        tuple(np.tile(weight[:, None], part.shape[1]) for weight, part in zip(beside, state, strict=True))
    )
    return frozen((workers * weights if averages else weights).astype(np.float32))


def _weights(rate: NDArray[np.float64], workers: int, interval: int) -> NDArray[np.float64]:
    """Return one divided by the expected number of workers that change a coordinate, if one of them does.

    >>> _weights(np.array([1.0, 1e-9]), workers=4, interval=100).round(3)
    array([0.25, 1.  ])
    """
    others = (workers - 1) * -np.expm1(-rate * interval)
    weights: NDArray[np.float64] = 1 / (1 + others)
    return weights
